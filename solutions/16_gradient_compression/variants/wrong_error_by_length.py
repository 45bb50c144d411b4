"""Keeps an error for each length of bucket."""

POINTS = 6.0
HINT = "Two buckets may have one length"
REPLACE = {
    "errors = [self.errors.get(p, torch.zeros(p.numel())) for p in parameters]": (
        "errors = [self.errors.get(len(flat), torch.zeros(len(flat)))]"
    ),
    "self.errors.update(zip(parameters, rest))": (
        "self.errors[len(flat)] = torch.cat(rest)"
    ),
}
