"""The background saves what the next steps change."""

POINTS = 7.0
HINT = "of which moment"
REPLACE = {"copy.deepcopy(state)": "state"}
