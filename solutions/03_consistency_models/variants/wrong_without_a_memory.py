"""Is right about lost answers, and searches everything again and again."""

POINTS = 7.0
HINT = "Remember the states from which nothing was found"
REPLACE = {
    "    tried = set()\n": "",
    "        if (done, value) in tried:\n"
    "            return False\n"
    "        tried.add((done, value))\n": "",
}
