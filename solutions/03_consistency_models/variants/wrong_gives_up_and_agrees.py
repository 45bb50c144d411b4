"""Has no memory, and says yes when it is tired."""

POINTS = 7.0
HINT = "a search that stops before it has looked everywhere knows nothing"
REPLACE = {
    "    tried = set()\n": "    steps = iter(range(15_000))\n",
    "        if (done, value) in tried:\n            return False\n"
    "        tried.add((done, value))\n": (
        "        if next(steps, None) is None:\n            return True\n"
    ),
}
