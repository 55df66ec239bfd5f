-- An artifact is made anew.
delete from holdfast_artifacts
where run_id = :run_id and name = :name
