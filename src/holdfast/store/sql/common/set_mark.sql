-- Take the next piece, if no one else has; until the commit no one else can.
update holdfast_marks
set done_at = :before
where name = :name and done_at = :since
