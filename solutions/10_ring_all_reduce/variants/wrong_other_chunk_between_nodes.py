"""All-reduces between nodes the chunk of its own number, which is not complete."""

POINTS = 7.0
HINT = "look at your step between nodes"
REPLACE = {"chunks[complete], peers)": "chunks[place], peers)"}
