"""The engine takes a W for something of which nothing is left to do."""

POINTS = 7.0
HINT = "Is stage.weights called for every W?"
REPLACE = {"stage.weights(m)": "pass"}
