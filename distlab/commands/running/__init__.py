"""Notebooks executed from a terminal: kernels, processes, results."""
