"""What a person asks about runs, or does to them."""
