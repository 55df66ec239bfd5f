select 1 as name where object_id('holdfast_schema') is not null
