"""Live streams: events and changes sent to open pages."""
