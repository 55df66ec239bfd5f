-- Those of these runs that made a build which was good until then or later: it was called stale, or made anew.
select r.id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r on r.id = k.id collate latin1_general_100_bin2
where
    exists (select 1 from holdfast_builds as b where b.run_id = r.id and b.stale_at >= :since)
    or exists (
        select 1
        from holdfast_runs as a
        where a.again_of = r.id and a.again_of is not null and a.kind = 'build' and a.created_at >= :since
    )
