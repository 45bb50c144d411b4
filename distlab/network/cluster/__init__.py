"""Nodes as real processes behind a switch, and the one thread that looks after them.

    cluster ─▶ hub ─┬─ hands: what a cell, a button or a plan does     inside: a node's
                    ├─ ears: what the processes say                    process, and the
                    └─ driver: the clients                             switch's

Each process writes down what it did (`journal`); `merge` makes one trace of it all.
"""
