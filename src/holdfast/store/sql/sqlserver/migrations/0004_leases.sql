-- When an orchestrator first saw the lease expired; null again after each renewal.
alter table holdfast_leases add expired_seen_at datetime2(6) null
