"""Histories: what clients asked of a store, when, and what they were told."""

from distlab.history.history import History

__all__ = ["History"]
