"""The player: one run, step by step, in a page that needs nothing else.

Trace ─▶ stops: where a learner would pause ─▶ Film ─▶ page: HTML that plays itself
                                                └────▶ still: frame, strip, gif
"""

from distlab.show.film.compare import Comparison, compare
from distlab.show.film.player import Player, folded, player, save

__all__ = ["Comparison", "Player", "compare", "folded", "player", "save"]
