"""Checks of exercises on agreement: what a store may answer, and whether it did."""
