"""The note is written in place, over the one that counts."""

POINTS = 4.0
HINT = "a file may be there by half"
REPLACE = {
    'disk.write("draft", pickle': 'disk.write("newest", pickle',
    'disk.sync("draft")': 'disk.sync("newest")',
    '        disk.rename("draft", "newest")\n': "",
}
