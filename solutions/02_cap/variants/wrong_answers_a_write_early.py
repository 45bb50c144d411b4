"""Answers a write as soon as all have been asked to keep it."""

POINTS = 6.0
HINT = "before a majority had kept it"
REPLACE = {
    "def on_silence(self, request, work):": (
        "    if not is_read:\n"
        "            yield from self.answer(request)\n"
        "    def on_silence(self, request, work):"
    ),
}
