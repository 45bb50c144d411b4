"""Somebody's nodes on trial: each in a Python process of its own, under watch.

    simulate, search ──▶ Proxy ── method, arguments ──▶ process of node 0: the object
     here, where a       Proxy ◀── effects, sealed ──── process of node 1: the object
     verdict is found    ...

What is decided about them is decided here, where nothing of theirs runs; and they share
no memory, whatever they write into a class or a global.
"""

from distlab.network.trial.disguise import Disguise
from distlab.network.trial.trial import Proxy, Sealed, Told, Trial

__all__ = ["Disguise", "Proxy", "Sealed", "Told", "Trial"]
