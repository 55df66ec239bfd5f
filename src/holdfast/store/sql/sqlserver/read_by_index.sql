-- It goes by an index as it is.
select 1 as one
