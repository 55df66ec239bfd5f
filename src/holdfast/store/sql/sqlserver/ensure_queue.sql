-- A queue may have a row already.
insert into holdfast_queues (name)
select :name
where not exists (select 1 from holdfast_queues where name = :name)
