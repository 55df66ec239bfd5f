-- Keys that runs wait for and that more may hold: open as many as there are who want one.
with recursive numbers (key, number, key_limit, wanted) as (
    select
        value ->> 'key',
        1,
        value ->> 'key_limit',
        value ->> 'wanted'
    from json_each(:rows)
    union all
    select
        key,
        number + 1,
        key_limit,
        wanted
    from numbers
    where number < key_limit
)

insert into holdfast_holds (key, number, run_id)
select
    f.key,
    f.number,
    null
from (
    select
        n.key,
        n.number,
        n.wanted,
        row_number() over (partition by n.key order by n.number) as turn
    from numbers as n
    where not exists (select 1 from holdfast_holds as h where h.key = n.key and h.number = n.number)
) as f
where f.turn <= f.wanted
on conflict do nothing
