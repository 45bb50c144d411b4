"""Reads indices above 32,767 as negative ones."""

POINTS = 7.0
HINT = "Which whole numbers fit in 16 bits"
REPLACE = {
    "indices.to(torch.uint16 if": "indices.to(torch.int16 if",
    "index_type = torch.uint16 if": "index_type = torch.int16 if",
}
