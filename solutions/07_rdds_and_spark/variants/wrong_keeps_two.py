"""Has the workers keep the lines, too."""

POINTS = 7.0
HINT = "who still reads the other one"
REPLACE = {
    "lines.map": "lines.cache().map",
}
