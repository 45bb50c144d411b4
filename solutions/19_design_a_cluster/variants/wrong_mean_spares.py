"""Has as many spares as nodes are in repair on average."""

POINTS = 7.0
HINT = "With so few spares"
REPLACE = {"return interval_s, days, spares": "return interval_s, days, round(mean)"}
