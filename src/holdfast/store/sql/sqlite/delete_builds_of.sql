-- What these runs made, or failed to make, is no build any more.
delete from holdfast_builds
where run_id in (select value from json_each(:ids))
