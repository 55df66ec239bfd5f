-- These needs must end well, though it was first said that they need not.
update holdfast_needs
set must_succeed = 1
where
    (needed, run_id) in (select value ->> 'needed', value ->> 'run_id' from json_each(:rows))
    and must_succeed = 0
