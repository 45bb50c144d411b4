"""Remembers from one history to the next."""

POINTS = 7.0
HINT = "is not true of the next"
REPLACE = {
    "    tried = set()\n": "",
}

tried = set()
