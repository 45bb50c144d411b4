"""Files are written and renamed, and never forced to the disk."""

POINTS = 0.0
HINT = "a file may be there by half"
REPLACE = {
    "    disk.sync(mine)\n": "",
    '        disk.sync("draft")\n': "",
}
