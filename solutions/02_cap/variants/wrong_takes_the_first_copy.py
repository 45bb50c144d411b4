"""Returns the first copy that was shown, and not the newest."""

POINTS = 6.0
HINT = "not always the first to arrive"
REPLACE = {
    "newest(heard.values())": "work.answers[0][1]",
    "copy = Copy((copy.version[0] + 1, request), work.call.value)": (
        "copy = newest(heard.values())\n"
        "            copy = Copy((copy.version[0] + 1, request), work.call.value)"
    ),
}
