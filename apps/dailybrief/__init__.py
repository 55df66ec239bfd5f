"""Daily brief: reads feeds all day, groups articles into events, and publishes the brief of the day."""
