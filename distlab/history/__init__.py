"""Histories: the operations of a store's clients, with invocations and responses."""

from distlab.history.history import History
from distlab.history.words import called, described, shown, timeline

__all__ = ["History", "called", "described", "shown", "timeline"]
