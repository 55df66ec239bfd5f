-- Let what this transaction still reads go by an index: a planner that guesses wrong would read, or sort, all there is.
select
    set_config('enable_bitmapscan', 'off', true) as bitmapscan,
    set_config('enable_seqscan', 'off', true) as seqscan
