-- So far a stage's segments are made; the last batch lets it wait for all of them.
update holdfast_waits
set
    errand = :errand,
    missing = missing + :count,
    spare = case when :first = 1 then :spare else spare end,
    because = :because,
    look = 1
where run_id = :run_id
