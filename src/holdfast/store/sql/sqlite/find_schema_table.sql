select name from sqlite_master where type = 'table' and name = 'holdfast_schema'
