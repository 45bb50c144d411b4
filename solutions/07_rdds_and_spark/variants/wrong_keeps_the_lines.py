"""Caches the text, and parses it again in every step."""

POINTS = 7.0
HINT = "What is kept are not points yet"
REPLACE = {
    "map(parse).cache(": "cache().map(parse",
}
