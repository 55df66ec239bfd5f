-- These runs need nothing any more.
delete from holdfast_needs
where run_id in (select value from json_each(:ids))
