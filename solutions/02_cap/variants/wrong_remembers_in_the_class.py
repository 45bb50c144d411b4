"""Keeps the copies in the class, which all nodes of a simulation share."""

POINTS = 7.0
HINT = "have no memory in common"
REPLACE = {
    "def __init__(self, me, peers):\n"
    "        super().__init__(me, peers)\n"
    "        self.copies = {}": "copies = {}  # noqa: RUF012, the mistake",
}
