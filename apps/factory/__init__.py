"""Factory: a script in Markdown becomes a narrated video, segment by segment, whatever happens to who makes it."""
