-- Artifacts: records of the files that runs made.

-- name: insert_artifact
-- An artifact was made; of two that are made at once for one place the later counts.
insert into holdfast_artifacts (place, run_id, name, attempt, size, sha256, made_at)
values (:place, :run_id, :name, :attempt, :size, :sha256, :made_at)
on conflict (place, name) do update
set
    run_id = excluded.run_id,
    attempt = excluded.attempt,
    size = excluded.size,
    sha256 = excluded.sha256,
    made_at = excluded.made_at

-- name: insert_artifact (sqlserver)
-- An artifact was made.
insert into holdfast_artifacts (place, run_id, name, attempt, size, sha256, made_at)
values (:place, :run_id, :name, :attempt, :size, :sha256, :made_at)

-- name: find_artifact
-- One artifact.
select
    run_id,
    place,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where place = :place and name = :name

-- name: find_artifacts
-- What was made in a range of places, behind a name in the first of them.
select
    run_id,
    place,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where place >= :first and place < :last and (place > :first or name > :behind)
order by place, name
limit :limit

-- name: read_artifacts
-- A page of artifacts, to check their files.
select
    run_id,
    place,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where place >= :place and (place > :place or name > :name)
order by place, name
limit :limit

-- name: adopt_artifact
-- An artifact that is as it must be serves another run too, and is that run's from now on.
update holdfast_artifacts
set
    run_id = :run_id,
    attempt = :attempt
where place = :place and name = :name and sha256 = :sha256

-- name: find_root
-- The first of the runs that this one repeats, directly or through others; the run itself if it repeats none.
with recursive chain (id, again_of, depth) as (
    select
        id,
        again_of,
        0
    from holdfast_runs
    where id = :id
    union all
    select
        r.id,
        r.again_of,
        c.depth + 1
    from chain as c
    inner join holdfast_runs as r on r.id = c.again_of
)

select coalesce(again_of, id) as root
from chain
order by depth desc
limit 1

-- name: find_root (sqlserver)
with chain (id, again_of, depth) as (
    select
        id,
        again_of,
        0
    from holdfast_runs
    where id = :id
    union all
    select
        r.id,
        r.again_of,
        c.depth + 1
    from chain as c
    inner join holdfast_runs as r on r.id = c.again_of
)

select top (1) coalesce(again_of, id) as root
from chain
order by depth desc
option (maxrecursion 10000)

-- name: delete_artifact
-- An artifact is made anew.
delete from holdfast_artifacts
where place = :place and name = :name

-- name: delete_artifacts_of (sqlite)
-- Some of what these runs have made is no longer kept.
delete from holdfast_artifacts
where (place, name) in (
    select
        a.place,
        a.name
    from holdfast_artifacts as a
    where a.run_id in {ids}
    order by a.place, a.name
    limit :limit
)
returning run_id, place, name, attempt, size, sha256, made_at

-- name: delete_artifacts_of (postgres)
-- Locked first, in the order of their keys: two of these never wait for each other.
with chosen as (
    select
        place,
        name
    from holdfast_artifacts
    where run_id in {ids}
    order by place, name
    limit :limit
    for update
)

delete from holdfast_artifacts as a
using chosen as c
where a.place = c.place and a.name = c.name
returning a.run_id, a.place, a.name, a.attempt, a.size, a.sha256, a.made_at

-- name: delete_artifacts_of (sqlserver)
delete top (:limit) a
output
    deleted.run_id,
    deleted.place,
    deleted.name,
    deleted.attempt,
    deleted.size,
    deleted.sha256,
    deleted.made_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_artifacts as a with (rowlock) on a.run_id = k.id collate latin1_general_100_bin2
{seek}
