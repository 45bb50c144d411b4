"""A trace read once, for pictures and for words alike."""
