-- Holds that no one wants any more.
delete from holdfast_holds
where
    (key, number) in (select value ->> 'key', value ->> 'number' from json_each(:rows))
    and run_id is null
