-- A pass is given out; its name may be taken.
insert into holdfast_passes (
    digest,
    name,
    role,
    kind,
    made_at,
    expires_at
)
values (
    :digest,
    :name,
    :role,
    :kind,
    :now,
    :expires_at
)
on conflict do nothing
