-- Where something begins that is done piece by piece; whoever comes first says it.
insert into holdfast_marks (name, done_at)
select
    cast(:name as nvarchar(200)),
    cast(:now as datetime2(6))
where not exists (select 1 from holdfast_marks where name = :name)
