"""Factory: turns a script in Markdown into a narrated video, segment by segment, even if workers crash."""
