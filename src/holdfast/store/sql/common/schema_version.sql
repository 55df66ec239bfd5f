select version from holdfast_schema where id = 1
