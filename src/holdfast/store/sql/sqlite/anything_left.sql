-- Is anything left that a worker of these queues could do, now or soon?
select 1 as something
where
    exists (select 1 from holdfast_ready where queue in (select value from json_each(:queues)) and job in (select value from json_each(:jobs)))
    or exists (select 1 from holdfast_waits where queue in (select value from json_each(:queues)) and job in (select value from json_each(:jobs)))
