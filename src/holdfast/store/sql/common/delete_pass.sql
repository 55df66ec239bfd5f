-- A pass is given back.
delete from holdfast_passes
where digest = :digest
