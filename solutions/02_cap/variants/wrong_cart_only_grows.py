"""Takes the union of what both sides have, so that what was removed comes back."""

POINTS = 7.0
HINT = "came back"
REPLACE = {
    "self.removed |= {tag for tag in there if there[tag] == call.value}": (
        "for tag in [tag for tag in there if there[tag] == call.value]:\n"
        "                del self.adds[tag]"
    ),
}
