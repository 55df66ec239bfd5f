"""Records: documents come in as files and come out as data, inside one process."""
