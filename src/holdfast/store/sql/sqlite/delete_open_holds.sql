-- Keys that no one wants any more.
delete from holdfast_holds
where key in (select value from json_each(:ids)) and run_id is null
