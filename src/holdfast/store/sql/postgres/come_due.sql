-- Keyed runs whose time has come: from now on they wait for their turn only.
update holdfast_waits
set
    due_at = null,
    look = 1
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
