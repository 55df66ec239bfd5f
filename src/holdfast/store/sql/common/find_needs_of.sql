-- What a run still needs; the first of it.
select
    n.needed,
    v.job,
    v.kind,
    v.state,
    v.holder,
    v.started_at,
    v.expires_at,
    b.scope,
    b.fingerprint
from holdfast_needs as n
inner join holdfast_run as v on v.id = n.needed
left join holdfast_builds as b on b.run_id = n.needed
where n.run_id = :run_id
order by n.needed
limit :limit
