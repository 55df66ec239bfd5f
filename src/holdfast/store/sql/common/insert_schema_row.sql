insert into holdfast_schema (id, version, touched) values (1, 0, 0) on conflict do nothing
