"""Is a majority store in the second step, too."""

POINTS = 7.0
HINT = "Whoever is cut off hears nobody"


class Answering(Refusing):
    pass
