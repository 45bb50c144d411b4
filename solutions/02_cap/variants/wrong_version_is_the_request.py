"""Takes the number of the request for a version, though it says nothing of time."""

POINTS = 7.0
HINT = "above that of what it replaces"
REPLACE = {"(copy.version[0] + 1, self.me)": "(request, self.me)"}
