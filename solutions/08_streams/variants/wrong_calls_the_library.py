"""Has the library's operator align barriers, which the processes of the check lack."""

POINTS = 0.0
HINT = "the protocol itself is the exercise"
REPLACE = {
    "if source in self.arrived:\n": (
        "from distlab.agree.stream import KeyedCount\n"
        "\n"
        "        if KeyedCount(self.me, self.peers, None).is_blocked(source):\n"
        ""
    ),
}
