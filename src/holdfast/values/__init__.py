"""Plain values: the engine fills them, the API answers with them, the client decodes them, the CLI prints them."""
