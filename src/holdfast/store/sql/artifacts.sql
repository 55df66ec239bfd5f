-- Artifacts: records of the files that runs have published.

-- name: insert_artifact
-- Record an artifact. If two are made at once with the same folder and name, the later one replaces the other.
insert into holdfast_artifacts (folder, run_id, name, claim, size, sha256, created_at)
values (:folder, :run_id, :name, :claim, :size, :sha256, :created_at)
on conflict (folder, name) do update
set
    run_id = excluded.run_id,
    claim = excluded.claim,
    size = excluded.size,
    sha256 = excluded.sha256,
    created_at = excluded.created_at

-- name: insert_artifact (sqlserver)
-- Record an artifact.
insert into holdfast_artifacts (folder, run_id, name, claim, size, sha256, created_at)
values (:folder, :run_id, :name, :claim, :size, :sha256, :created_at)

-- name: find_artifact
-- Find one artifact.
select
    run_id,
    folder,
    name,
    claim,
    size,
    sha256,
    created_at
from holdfast_artifacts
where folder = :folder and name = :name

-- name: find_artifacts
-- Find the artifacts in a range of folders, after a given name in the first folder.
select
    run_id,
    folder,
    name,
    claim,
    size,
    sha256,
    created_at
from holdfast_artifacts
where folder >= :first and folder < :last and (folder > :first or name > :behind)
order by folder, name
limit :limit

-- name: read_artifacts
-- Read a page of artifacts, to check their files.
select
    run_id,
    folder,
    name,
    claim,
    size,
    sha256,
    created_at
from holdfast_artifacts
where folder >= :folder and (folder > :folder or name > :name)
order by folder, name
limit :limit

-- name: adopt_artifact
-- Assign an unchanged artifact to another run, which reuses it.
update holdfast_artifacts
set
    run_id = :run_id,
    claim = :claim
where folder = :folder and name = :name and sha256 = :sha256

-- name: find_root
-- Find the first run in the chain of runs that this one repeats; the run itself if it repeats none.
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
-- Delete the record of an artifact that is made again.
delete from holdfast_artifacts
where folder = :folder and name = :name

-- name: delete_artifacts_of (sqlite)
-- Delete some artifacts of these runs.
delete from holdfast_artifacts
where (folder, name) in (
    select
        a.folder,
        a.name
    from holdfast_artifacts as a
    where a.run_id in {ids}
    order by a.folder, a.name
    limit :limit
)
returning run_id, folder, name, claim, size, sha256, created_at

-- name: delete_artifacts_of (postgres)
-- Lock the rows first, in the order of their keys, so that two of these statements never deadlock.
with chosen as (
    select
        folder,
        name
    from holdfast_artifacts
    where run_id in {ids}
    order by folder, name
    limit :limit
    for update
)

delete from holdfast_artifacts as a
using chosen as c
where a.folder = c.folder and a.name = c.name
returning a.run_id, a.folder, a.name, a.claim, a.size, a.sha256, a.created_at

-- name: delete_artifacts_of (sqlserver)
delete top (:limit) a
output
    deleted.run_id,
    deleted.folder,
    deleted.name,
    deleted.claim,
    deleted.size,
    deleted.sha256,
    deleted.created_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_artifacts as a with (rowlock) on a.run_id = k.id collate latin1_general_100_bin2
{seek}
