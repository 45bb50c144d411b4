"""Checks of exercise 11: gradients of many ranks, their order and overlap."""
