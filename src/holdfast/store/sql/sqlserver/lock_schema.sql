update holdfast_schema set touched = touched + 1 output inserted.version where id = 1
