"""Leaves the watermarks of the old attempt."""

POINTS = 0.0
HINT = "counts and watermarks of the old one are all void"
REPLACE = {
    'self.marks = dict.fromkeys(self.sources, float("-inf")) | marks': (
        'if not hasattr(self, "marks"):\n'
        '            self.marks = dict.fromkeys(self.sources, float("-inf"))'
    ),
}
