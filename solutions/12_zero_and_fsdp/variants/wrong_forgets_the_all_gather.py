"""Writes its own trained part back, and tells nobody."""

POINTS = 7.0
HINT = "An all-gather is missing"
REPLACE = {
    "self.flat.copy_(whole(self.comm, self.part, len(self.flat)))": (
        "start = self.comm.rank * len(self.part)\n"
        "        mine = self.flat[start : start + len(self.part)]\n"
        "        mine.copy_(self.part[: len(mine)])"
    ),
}
