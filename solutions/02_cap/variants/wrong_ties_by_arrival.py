"""Gives the first writes of both sides equal versions."""

POINTS = 7.0
HINT = "versions that are equal"
REPLACE = {
    ", self.me)": ", 0)",
    "copy, self.copies.get(key, Copy())": "self.copies.get(key, Copy()), copy",
}
