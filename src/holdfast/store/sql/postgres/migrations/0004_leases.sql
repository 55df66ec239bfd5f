-- When an orchestrator first saw the lease expired; null again after each renewal.
alter table holdfast_leases add column expired_seen_at timestamptz
