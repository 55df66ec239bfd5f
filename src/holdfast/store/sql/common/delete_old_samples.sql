-- Old samples are no longer kept.
delete from holdfast_samples
where minute_at < :before
