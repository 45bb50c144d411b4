"""Checks of exercises 09 and 10: collectives, by values, bytes and rounds."""
