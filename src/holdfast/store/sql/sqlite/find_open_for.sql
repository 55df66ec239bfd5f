-- For how many seconds a writer has been at it: there is only one, and who counts becomes it.
select null as seconds
