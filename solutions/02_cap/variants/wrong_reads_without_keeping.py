"""Answers a read after its first phase."""

POINTS = 6.0
HINT = "a majority has to have what it is about to tell"
REPLACE = {
    "if not is_read:\n"
    "            copy = Copy((copy.version[0] + 1, request), work.call.value)": (
        "if is_read:\n"
        "            yield from self.answer(request, copy.value)\n"
        "            return\n"
        "        copy = Copy((copy.version[0] + 1, request), work.call.value)"
    ),
}
