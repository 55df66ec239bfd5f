"""Who may do what over HTTP: tokens, sessions, signing in."""
