"""Takes half of the nodes for a majority."""

POINTS = 6.0
HINT = "This side has no majority of the nodes"
REPLACE = {
    "<= (len(self.peers) + 1) //": "< (len(self.peers) + 1) /",
}
