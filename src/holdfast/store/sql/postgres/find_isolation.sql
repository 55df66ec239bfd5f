-- The isolation of this transaction, if its statements do not see what others commit meanwhile.
select
    case
        when current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            then current_setting('transaction_isolation')
    end as isolation
