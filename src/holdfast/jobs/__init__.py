"""Jobs: functions that become runs, their options and what they may ask of their run."""
