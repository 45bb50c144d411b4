"""Notes what it has drawn in a file, which a second attempt would do again."""

POINTS = 7.0
HINT = "A task may run twice"
REPLACE = {
    "yield name, (zlib.crc32(line.encode()), line)": (
        'with open("drawn.txt", "a") as file:\n'
        "            print(line, file=file)\n"
        "        yield name, (zlib.crc32(line.encode()), line)"
    ),
}
