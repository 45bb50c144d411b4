"""Receives into a new tensor, and gives it the old one's name."""

POINTS = 7.0
HINT = "What was given is unchanged"
REPLACE = {
    "comm.recv(tensor, rank": "tensor = comm.recv(torch.empty_like(tensor), rank",
}
