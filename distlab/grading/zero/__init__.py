"""Checks of exercise 12: sharded training, its numbers and its memory."""
