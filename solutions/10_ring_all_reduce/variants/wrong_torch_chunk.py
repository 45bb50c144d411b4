"""Cuts with torch.chunk, which makes fewer chunks of few elements."""

POINTS = 4.0
HINT = "split(tensor, n) always makes n"
REPLACE = {"split(tensor, len(ring))": "torch.chunk(tensor, len(ring))"}
