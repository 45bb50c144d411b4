"""Answers whoever waits at an index, also if another leader's entry is there."""

POINTS = 8.0
HINT = "old value, or a call"
REPLACE = {
    "return self.term_at(previous) == previous_term": (
        "return self.term_at(previous) == previous_term\n\n"
        "    def commit_up_to(self, index):\n"
        "        begin, waits = self.applied, dict(self.waiting)\n"
        "        yield from super().commit_up_to(index)\n"
        "        for at in range(begin + 1, self.applied + 1):\n"
        "            if waits.get(at, self.log[at - 1].request) != "
        "self.log[at - 1].request:\n"
        "                yield Reply(waits[at])"
    )
}
