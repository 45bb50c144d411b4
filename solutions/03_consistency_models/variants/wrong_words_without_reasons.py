"""Knows the words, and proves two of them."""

POINTS = 7.0
HINT = "Which few operations show that?"

answers = {
    "A": ("linearizable", "b c a d e", ""),
    "B": ("linearizable", "a c b d e", ""),
    "C": ("sequential", "a c b d", ""),
    "D": ("sequential", "a d b c e", ""),
    "E": ("causal", {2: "a c b e", 3: "b d a f"}, ""),
    "F": ("causal", {0: "a c b e", 1: "b d a f"}, ""),
    "G": ("eventual", "", ""),
    "H": ("none", "", ""),
}
