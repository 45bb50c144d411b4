"""Goes on with inputs whose barrier has come."""

POINTS = 0.0
HINT = "Is an input blocked whose barrier has come"
REPLACE = {
    "if source in self.arrived:": "if False:",
}
