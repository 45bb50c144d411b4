"""Checks of exercise 07: what a function does with RDDs, and what is moved."""
