"""Keeps each client's order, and no more."""

POINTS = 6.0
HINT = "that is sequential consistency"
REPLACE = {
    "first_end = min(one.end for one in left": "asked = set(",
    "if one.start > first_end:\n                break": (
        "if one.client in asked:\n"
        "                continue\n"
        "            asked.add(one.client)"
    ),
}
