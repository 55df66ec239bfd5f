select 1 as name where to_regclass('holdfast_schema') is not null
