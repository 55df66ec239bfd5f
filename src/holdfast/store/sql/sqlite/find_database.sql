-- The file, as SQLite resolved its path; empty for a database in memory.
select list.file as name
from pragma_database_list as list
where list.name = 'main'
