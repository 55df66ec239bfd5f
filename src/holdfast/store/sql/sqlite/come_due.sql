-- Keyed runs whose time has come: from now on they wait for their turn only.
update holdfast_waits
set
    due_at = null,
    look = 1
where run_id in (select value from json_each(:ids))
