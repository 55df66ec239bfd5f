-- None of its children is left to be stopped.
delete from holdfast_stops
where parent_id = :parent_id
