"""Saves once an hour, whatever a save costs."""

POINTS = 7.0
HINT = "Another interval keeps more work"
REPLACE = {'math.sqrt(2 * job["save_s"] * between_s)': "3600.0"}
