"""Training on many ranks: each method from scratch, and short enough to be read."""
