"""Raises on the rank with the NaN, before the all-gather."""

POINTS = 6.0
HINT = "One rank refuses, and the others wait"
REPLACE = {
    "whole = flat + torch.cat(errors)": (
        "whole = flat + torch.cat(errors)\n"
        "        if not flat.isfinite().all():\n"
        '            raise ValueError(f"rank {comm.rank}: not finite")'
    ),
}
