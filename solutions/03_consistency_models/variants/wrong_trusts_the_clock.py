"""Takes C, D, E and F for models of one size smaller or larger."""

POINTS = 8.0
HINT = "real time counts"

answers = {name: ("", "", "") for name in EIGHT_HISTORIES}
answers["A"] = ("linearizable", "b c a d e", "")
answers["B"] = ("linearizable", "a c b d e", "")
answers["C"] = ("sequential", "a c b d", "a b c")
answers["D"] = ("linearizable", "a d b c e", "")
answers["E"] = ("sequential", "a c b d e f", "a b c d e f")
answers["F"] = ("causal", {0: "a c b e", 1: "b d a f"}, "a b c d")
answers["G"] = ("none", "", "a b c d e")
answers["H"] = ("causal", {1: "a b c e", 2: "a b d"}, "a b c e")
