-- Wake other processes when this is committed.
select pg_notify('holdfast', :names)
