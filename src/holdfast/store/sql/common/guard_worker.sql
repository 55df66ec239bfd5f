-- This worker has not been replaced, and is not until this transaction ends.
update holdfast_workers
set stopping = stopping
where id = :id
