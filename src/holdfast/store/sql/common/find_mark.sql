-- How far something has been done.
select done_at
from holdfast_marks
where name = :name
