-- These asks have their build; each comes back to whoever removed it, and to no one else.
delete from holdfast_asks
where (run_id, number) in (select value ->> 'run_id', value ->> 'number' from json_each(:rows))
returning run_id, number
