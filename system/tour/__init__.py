"""The tour: a little of everything that Holdfast does, over and over, for someone to watch."""
