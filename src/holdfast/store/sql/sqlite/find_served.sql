-- Those of these runs that made a build which was good until then or later: it was called stale, or made anew.
select r.id
from holdfast_runs as r
where
    r.id in (select value from json_each(:ids))
    and (
        exists (select 1 from holdfast_builds as b where b.run_id = r.id and b.stale_at >= :since)
        or exists (
            select 1
            from holdfast_runs as a
            where a.again_of = r.id and a.kind = 'build' and a.created_at >= :since
        )
    )
