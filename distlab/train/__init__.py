"""Training on many ranks, each way from scratch and short enough to be read."""
