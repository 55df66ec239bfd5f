-- For how many seconds the oldest transaction has been open: not ours to ask, but who counts waits for what it wrote.
select cast(null as float) as seconds
