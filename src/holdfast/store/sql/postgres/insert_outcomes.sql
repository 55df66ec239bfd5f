-- End runs.
insert into holdfast_outcomes (
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    finished_at,
    seal
)
select
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    :now,
    seal
from json_to_recordset(cast(:rows as json)) as r (run_id text, state text, failure_type text, error text, result text, attempt integer, tries integer, takeovers integer, holder text, started_at timestamptz, seal text)
