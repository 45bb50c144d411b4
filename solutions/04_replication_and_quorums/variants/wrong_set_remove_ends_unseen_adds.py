"""Takes an item out with all its dots if one of them was removed."""

POINTS = 6.0
HINT = "An add is missing that no remove had seen"
REPLACE = {
    "self.state = (kept | new, seen)": (
        "all_dots = mine | other\n"
        "        gone = {all_dots[d] for d in all_dots.keys() - (kept | new).keys()}\n"
        "        left = {d: i for d, i in (kept | new).items() if i not in gone}\n"
        "        self.state = (left, seen)"
    )
}
