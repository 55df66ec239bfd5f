"""Authentication over HTTP: tokens, sessions and the sign-in page."""
