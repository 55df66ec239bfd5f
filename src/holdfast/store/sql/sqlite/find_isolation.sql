-- Once a transaction has the write lock, it sees all that was committed.
select null as isolation
