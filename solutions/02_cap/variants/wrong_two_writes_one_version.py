"""Gives two writes through one node the same version."""

POINTS = 6.0
HINT = "no other write may have the same"
REPLACE = {
    ", request)": ", self.me)",
}
