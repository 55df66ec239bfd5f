-- Whoever has this name has no pass any more.
delete from holdfast_passes
where name = :name
