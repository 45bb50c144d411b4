"""Believes a late response, which says less than a newer one."""

POINTS = 4.0
HINT = "was known to hold then"
REPLACE = {
    "self.match[sender] = max(self.match[sender], reply.last)": (
        "self.match[sender] = reply.last"
    )
}
