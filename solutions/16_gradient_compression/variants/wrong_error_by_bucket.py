"""Keeps an error for each bucket, and loses it when buckets are made anew."""

POINTS = 6.0
HINT = "An error kept by bucket"
REPLACE = {
    "errors = [self.errors.get(p, torch.zeros(p.numel())) for p in parameters]": (
        "errors = [self.errors.get(tuple(parameters), torch.zeros(len(flat)))]"
    ),
    "self.errors.update(zip(parameters, rest))": (
        "self.errors[tuple(parameters)] = torch.cat(rest)"
    ),
}
