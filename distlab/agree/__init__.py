"""How nodes agree, or fail to: stores that can be broken, and what judges them."""

from distlab.agree.stores import (
    Forgetful,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
)

__all__ = ["Forgetful", "LastWriterWins", "PrimaryCopy", "Quorum", "VersionVectors"]
