-- An artifact that is as it must be serves another run too, and is that run's from now on.
update holdfast_artifacts
set
    run_id = :run_id,
    attempt = :attempt
where place = :place and name = :name and sha256 = :sha256
