-- Take leases away, if they are still as we saw them.
delete from holdfast_leases as l
using json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer, expires_at timestamptz)
where l.run_id = r.run_id and l.attempt = r.attempt and l.expires_at = r.expires_at
returning l.run_id, l.cancel_requested_at, l.cancel_reason
