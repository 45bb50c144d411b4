"""Takes any response for one to all that is in the log by then."""

POINTS = 4.0
HINT = "An entry was committed that a later leader lacks"
REPLACE = {
    "self.match[sender] = max(self.match[sender], reply.last)": (
        "self.match[sender] = self.last"
    )
}
