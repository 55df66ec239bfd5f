insert into holdfast_schema (id, version, touched)
select 1, 0, 0
where not exists (select 1 from holdfast_schema where id = 1)
