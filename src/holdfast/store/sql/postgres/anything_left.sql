-- Is anything left that a worker of these queues could do, now or soon?
select 1 as something
where
    exists (select 1 from holdfast_ready where queue = any (array(select json_array_elements_text(cast(:queues as json)))) and job = any (array(select json_array_elements_text(cast(:jobs as json)))))
    or exists (select 1 from holdfast_waits where queue = any (array(select json_array_elements_text(cast(:queues as json)))) and job = any (array(select json_array_elements_text(cast(:jobs as json)))))
