"""Histories: what clients asked of a store, when, and what they were told."""

from distlab.history.history import History
from distlab.history.timeline import timeline
from distlab.history.words import called, shown, told

__all__ = ["History", "called", "shown", "timeline", "told"]
