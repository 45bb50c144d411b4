"""Leaves all inputs blocked until the snapshot is durable."""

POINTS = 8.0
HINT = "A result waits for the disk"
REPLACE = {
    "held, self.arrived, self.held = self.held, set(), []": (
        "if type(self).on_synced is Node.on_synced:\n"
        "            yield from self.unblock()\n"
        "\n"
        "    def unblock(self):\n"
        "        held, self.arrived, self.held = self.held, set(), []"
    ),
    "yield Send(COORDINATOR, Ack(*token))": (
        "yield Send(COORDINATOR, Ack(*token))\n"
        "        if token[0] == self.attempt:\n"
        "            yield from self.unblock()"
    ),
}
