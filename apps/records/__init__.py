"""Records: extracts data from uploaded documents, in a single process."""
