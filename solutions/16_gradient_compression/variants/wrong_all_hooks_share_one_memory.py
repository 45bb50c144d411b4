"""Keeps errors in a name outside of the class."""

POINTS = 6.0
HINT = "begins with what an older one kept"
REPLACE = {
    "self.density, self.errors = density, {}": (
        "self.density, self.errors = density, MEMORY"
    ),
}
MEMORY = {}
