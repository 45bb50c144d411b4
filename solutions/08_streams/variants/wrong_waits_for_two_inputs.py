"""Takes its checkpoint when two barriers have come."""

POINTS = 0.0
HINT = "counted twice, or not at all"
REPLACE = {
    "if len(self.arrived) < len(self.sources):": "if len(self.arrived) < 2:",
}
