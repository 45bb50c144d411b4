"""Processes all that has waited, also behind the next barrier in it."""

POINTS = 0.0
HINT = "next barrier among what waits"
REPLACE = {
    "yield from self.on_input(source, message)": (
        "if type(message) is Records:\n"
        "                yield from self.on_records(source, message)\n"
        "        for source, message in held:\n"
        "            if type(message) is Barrier:\n"
        "                yield from self.align(source, message.checkpoint)"
    ),
}
