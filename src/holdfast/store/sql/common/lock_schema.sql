update holdfast_schema set touched = touched + 1 where id = 1 returning version
