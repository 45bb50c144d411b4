"""The player: an animation of one run, step by step, in a self-contained page.

Trace ─▶ shown_steps ─▶ Animation: its frames ─┬─▶ page: HTML that plays itself
                                               └─▶ still: frame, key frames, gif
"""

from distlab.show.player.compare import Comparison, compare
from distlab.show.player.log_animation import LogAnimation, NodeLog
from distlab.show.player.player import Player, folded, player, save

__all__ = [
    "Comparison",
    "LogAnimation",
    "NodeLog",
    "Player",
    "compare",
    "folded",
    "player",
    "save",
]
