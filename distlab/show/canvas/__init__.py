"""The canvas of the figures: its rows, lanes, axes, looks and text."""
