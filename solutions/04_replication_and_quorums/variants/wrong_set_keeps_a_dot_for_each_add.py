"""Leaves the dots of an item where it is added again."""

POINTS = 6.0
HINT = "leaves something behind"
REPLACE = {
    "in items if items[dot] == call.value]": (
        "in items if (items[dot], 'remove') == (call.value, call.op)]"
    )
}
