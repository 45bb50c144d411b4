"""Rounds down: with six ranks the third round is not there."""

POINTS = 6.0
HINT = "has to be there all the same"
REPLACE = {
    "while distance < n:\n"
    '        comm.mark(f"broadcast, distance {distance}")\n'
    "        if place < distance and place + distance < n:": (
        "while 2 * distance <= n:\n        if place < distance:"
    ),
    "elif distance <= place": "elif place",
}
