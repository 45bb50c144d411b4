"""Guesses as people write them, and how each is judged."""

NUMBERS = {
    "12": 12.0,
    " 12.5 ": 12.5,
    "12,5": 12.5,
    "0,125": 0.125,
    "300,000": 300_000.0,
    "1,234,567.5": 1_234_567.5,
    "1e3": 1000.0,
    "2/3": 2 / 3,
    "-3": -3.0,
    "−3": -3.0,
    "12 MB": 12.0,
    "12MB": 12.0,
    "2/3 MB": 2 / 3,
    "~ 12": 12.0,
    "about 12 GB": 12_000.0,
    "1 GiB": 1073.741824,
}
NO_NUMBERS = ["", "MB", "12 s", "12 mb", "twelve", "1/0", "1/2/3", "1,2,3", "inf"]
NO_NUMBERS += ["nan", "1e999", None, True, float("nan"), [1], {}, b"12", "9" * 5000]

LINES = [
    (8, 12, 12, "you said 8 MB · the formula says 12 MB · measured 12 MB: "
     "your guess was 0.67 of it"),
    (12, 12, None, "you said 12 MB · measured 12 MB: just as you said"),
    (12.00001, 12, None, "you said 12 MB · measured 12 MB: just as you said"),
    (11.5, 12, None, "you said 11.5 MB · measured 12 MB: your guess was 4.2 % too low"),
    (12.3, 12, None, "you said 12.3 MB · measured 12 MB: your guess was 2.5 % too "
     "high"),
    (24, 12, None, "you said 24 MB · measured 12 MB: your guess was 2 times that"),
    (12, 12_000, None, "you said 12 MB · measured 12,000 MB: "
     "that is 1000 times your guess"),
    (0, 12, None, "you said 0 MB · measured 12 MB: you were off by 12 MB"),
    (5, 0, None, "you said 5 MB · measured 0 MB: you were off by 5 MB"),
    (-3, 3, None, "you said -3 MB · measured 3 MB: you were off by 6 MB"),
    ("2/3", 1e12, None, "you said 0.6667 MB · measured 1e12 MB: "
     "that is 1.5e12 times your guess"),
]  # fmt: skip
