"""Checks of exercise 01: tasks shared among ranks, and the best number of them."""
