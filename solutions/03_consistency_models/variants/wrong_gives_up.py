"""Has no memory, and says no when it is tired."""

POINTS = 7.0
HINT = "a search that stops before it has looked everywhere knows nothing"
REPLACE = {
    "    tried = set()\n": "    steps = iter(range(15_000))\n",
    "        if (done, value) in tried:\n": "        if next(steps, None) is None:\n",
    "        tried.add((done, value))\n": "",
}
