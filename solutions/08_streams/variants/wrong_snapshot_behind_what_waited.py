"""Takes its snapshot after it has processed what had waited."""

POINTS = 0.0
HINT = "before what has waited is processed"
REPLACE = {
    "yield from self.save(checkpoint, self.state())": "pass",
    "yield from self.on_input(source, message)": (
        "yield from self.on_input(source, message)\n"
        "        yield from self.save(checkpoint, self.state())"
    ),
}
