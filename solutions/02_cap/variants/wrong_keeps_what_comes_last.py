"""Keeps whatever arrives."""

POINTS = 7.0
HINT = "An old value has won"
REPLACE = {
    "newest([copy, self.copies.get(key, Copy())])": "copy",
}
