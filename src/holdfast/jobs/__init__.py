"""Jobs: functions that Holdfast runs, their options, and the context they receive."""
