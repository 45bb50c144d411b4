"""Notes what it has drawn in a file, which a second attempt would do again."""

POINTS = 7.0
HINT = "A task may run twice"
REPLACE = {
    "yield name, (zlib.crc32(line.encode()), line)": (
        'print(line, file=open("drawn.txt", "a"))\n'
        "        yield name, (zlib.crc32(line.encode()), line)"
    ),
}
