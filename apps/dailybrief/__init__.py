"""Daily brief: reads news feeds, groups articles into events, and publishes a brief once a day."""
