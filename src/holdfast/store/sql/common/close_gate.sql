-- No one may delete outcomes.
delete from holdfast_gates
where id = :id
