-- An artifact is made anew.
delete from holdfast_artifacts
where place = :place and name = :name
