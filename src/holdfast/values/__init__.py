"""Plain values: the engine creates them, the API returns them, the client decodes them and the CLI prints them."""
