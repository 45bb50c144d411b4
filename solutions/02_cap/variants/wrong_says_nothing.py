"""Tells nobody that too few have answered."""

POINTS = 6.0
HINT = "Somebody waits, and nothing comes"
REPLACE = {
    'yield Refuse(request, "too few nodes answer")': (
        "return [] if self.peers else None"
    ),
}
