update holdfast_schema set version = :version where id = 1
