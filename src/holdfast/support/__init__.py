"""What every other package may use; nothing here knows what a run is."""
