"""Every line is read once, wherever a file is cut."""

import random
from itertools import repeat
from pathlib import Path

import pytest

from distlab.dataflow.line_boundaries import line_number, lines_in
from distlab.dataflow.splits import blocks_of, files_of, splits_of

ODD = {
    "empty": b"",
    "one line end": b"\n",
    "no final line end": b"one\ntwo\nthree",
    "carriage returns": b"one\r\ntwo\r\n\r\nthree\r\n",
    "a carriage return inside": b"o\rne\r\n\r\r\ntwo",
    "empty lines": b"\n\n\none\n\n",
    "many bytes a letter": "äöü\n€uro\n𝄞 clef\nñ".encode(),
    "not utf-8": b"\xff\xfe\n\xc3\n\xa4 half a letter\n",
    "a mark of UTF-8": b"\xef\xbb\xbfone\n\xef\xbb\xbftwo",
    "a long line": b"x" * 300 + b"\nshort\n" + b"y" * 200,
    "a NUL and a form feed": b"a\x00b\x0cc\nd\x1ce\n",
}


def oracle(data):
    """Return the lines as one would read them without any cut."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.decode(errors="replace") for line in lines]


def read(splits):
    pieces = [piece for split in splits for piece in split]
    return [
        line
        for p in pieces
        for block in blocks_of(p, 2**24)
        for line in lines_in(*block)
    ]


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_every_cut_gives_every_line_once(tmp_path, data):
    path = tmp_path / "file"
    path.write_bytes(data)
    for split_bytes in range(1, len(data) + 2):
        assert read(splits_of([("file", str(path))], repeat(split_bytes))) == oracle(
            data
        )


def test_random_files_with_random_cuts_give_every_line_once(tmp_path):
    rng = random.Random(6)
    for trial in range(60):
        files = []
        for number in range(rng.randrange(1, 5)):
            path = tmp_path / f"{trial}-{number}"
            size = rng.randrange(0, 80)
            path.write_bytes(bytes(rng.choices(b"ab \n\r\xc3\xa4", k=size)))
            files.append((path.name, str(path)))
        split_bytes = rng.randrange(1, 60)
        splits = splits_of(files, repeat(split_bytes))
        data = [Path(path).read_bytes() for _, path in files]
        whole = [line for each in data for line in oracle(each)]
        assert read(splits) == whole
        sizes = [sum(p.end - p.start for p in split) for split in splits]
        assert all(size == split_bytes for size in sizes[:-1])


def test_a_large_file_is_read_in_small_blocks(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"0123456789abcde\n" * 200_000)
    (split,) = splits_of([("", str(path))], repeat(3_200_000))
    blocks = [block for _, block in blocks_of(*split, 2**28)]
    assert b"".join(blocks) == path.read_bytes()
    assert max(map(len, blocks)) < 1.1 * 2**20


def test_a_line_number_is_that_of_an_editor(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one\n\nthree\nfour\r\nfive\rsix")
    starts = (0, 4, 5, 11, 17, 22)
    assert [line_number(str(path), at) for at in starts] == [1, 2, 3, 4, 5, 6]


def test_a_folders_files_come_in_order_with_names_below_it(tmp_path):
    for name in ("b.txt", "a/z.txt", "a/y/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    names = [name for name, _ in files_of(tmp_path, "")]
    assert names == ["a/y/x.txt", "a/z.txt", "b.txt"]
