"""Collects the index in a global, as if all ran in one process."""

POINTS = 6.0
HINT = "where no other worker sees it"
REPLACE = {
    "yield word, name": (
        "INDEX.setdefault(word, set()).add(name)\n        yield word, 1"
    ),
}

INDEX = {}


def index_reducer(word, ones):
    return sorted(INDEX[word])
