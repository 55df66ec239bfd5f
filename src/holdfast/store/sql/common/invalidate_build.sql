-- What was made is not good any more; why it was first called so stays.
update holdfast_builds
set
    stale_at = :now,
    because = :because
where
    job = :job
    and scope = :scope
    and fingerprint = :fingerprint
    and run_id = :run_id
    and stale_at is null
