"""Checks of exercise 00: who speaks when, and what went before."""
