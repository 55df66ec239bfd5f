-- From now on and until it is closed, this transaction may delete outcomes.
insert into holdfast_gates (id)
values (:id)
