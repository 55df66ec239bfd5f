-- These needs are met; each comes back to whoever removed it, and to no one else.
delete from holdfast_needs
where (needed, run_id) in (select value ->> 'needed', value ->> 'run_id' from json_each(:rows))
returning needed, run_id
