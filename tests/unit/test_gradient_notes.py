"""What a check of training reads in a rank's notes, and in how buckets are laid out."""

import pytest

from distlab.grading.gradients.layout import (
    Row,
    hint_for_layout,
    just_reached,
    laid_out,
    layout_told,
)
from distlab.grading.gradients.notes import Seen, steps_of
from distlab.grading.gradients.orders import (
    accumulating,
    around,
    calls_of,
    disagreement,
    first_misstep,
    wrong_calls,
)

ROWS = [
    Row("a", "float64", 50, 400, False),
    Row("b", "float64", 10, 80, False),
    Row("frozen", "float64", 10, 80, True),
    Row("c", "float32", 60, 240, False),
    Row("d", "float64", 10, 80, False),
    Row("e", "float64", 40, 320, False),
    Row("f", "float64", 10, 80, False),
]
LIMITS = 100, 480


def test_buckets_are_full_before_their_limit_and_of_one_type():
    assert laid_out(ROWS, *LIMITS) == [["f"], ["e", "d"], ["c"], ["b", "a"]]
    assert laid_out(ROWS, 1, 1) == [["f"], ["e"], ["d"], ["c"], ["b"], ["a"]]
    assert laid_out(ROWS, 480, 80) == [["f", "e", "d"], ["c"], ["b"], ["a"]]


LAYOUTS = [
    ([["f"], ["e", "d"], ["c"], ["frozen", "b"], ["a"]], "A frozen parameter"),
    ([["f"], ["e", "d"], ["c"], ["b", "a"], ["a"]], "a is in more than one place"),
    ([["f"], ["e", "d"], ["c"], ["b"]], "a is in no bucket"),
    ([[], ["f"], ["e", "d"], ["c"], ["b", "a"]], "A bucket is empty"),
    ([["f"], ["e", "d"], ["c", "b"], ["a"]], "A buffer has one dtype"),
    ([["a", "b"], ["c"], ["d", "e"], ["f"]], "the order of registration"),
    ([["f", "e", "d"], ["c"], ["b", "a"]], "a limit of its own"),
    ([["f"], ["e"], ["d"], ["c"], ["b"], ["a"]], "Only the first bucket"),
    ([["f"], ["d", "e"], ["c"], ["a", "b"]], "from the last to the first"),
]


@pytest.mark.parametrize("yours, hint", LAYOUTS)
def test_a_wrong_layout_meets_the_hint_that_fits(yours, hint):
    assert hint in hint_for_layout(ROWS, LIMITS, yours)


@pytest.mark.parametrize("yours, limits, hint", [
    ([["f", "e"], ["d"], ["c"], ["b", "a"]], (100, 480), "once it has reached its"),
    ([["f", "e", "d"], ["c"], ["b", "a"]], (70, 300), "The limits are in bytes"),
    ([["f"], ["e"], ["d"], ["c"], ["b"], ["a"]], (400, 400), "as many bytes as are"),
    ([["f"], ["e", "d"], ["c"], ["b", "a"]], (1000, 420), "more bytes than it has"),
    ([["f"], ["e"], ["d"], ["c"], ["b"], ["a"]], (400, 480), "a bucket of its own"),
])  # fmt: skip
def test_limits_that_were_read_in_another_way_are_known(yours, limits, hint):
    assert hint in hint_for_layout(ROWS, limits, yours)


def test_limits_are_found_that_buckets_meet_exactly():
    assert just_reached(ROWS, 420, 1000) == (400, 80)
    assert laid_out(ROWS, 420, 1000)[0] == laid_out(ROWS, 400, 80)[0] == ["f", "e"]


def test_a_layout_is_shown_bucket_by_bucket_with_sizes():
    assert layout_told(ROWS, LIMITS, [["f"], ["e"], ["d"], ["c"], ["b", "a"]]) == [
        "first_bytes=100, bucket_bytes=480; name:bytes",
        "  bucket  expected    yours",
        "       0  f:80        f:80",
        "       1  e:320 d:80  e:320  ← first difference",
        "       2  c:240       d:80",
        "       3  b:80 a:400  c:240",
        "       4  -           b:80 a:400",
    ]


BUCKETS = [["d", "c"], ["b"], ["a"]]


def seen(words):
    """Return notes from words, such as "d c >0 b >1 w0": gradients, starts, waits."""
    notes = []
    for word in words.split():
        if word[0] in ">!w":
            kind = {">": "start", "!": "call", "w": "wait"}[word[0]]
            notes.append(Seen(kind, word[1:].split(":")))
        elif word[0] == "#":
            notes.append(Seen("microbatch", [word[1:]]))
        elif word == "end":
            notes.append(Seen("end", []))
        else:
            notes.append(Seen("gradient", [word]))
    return notes


STEPS = [
    ("#0 d c >0 b >1 a >2 w0 w1 w2 end", 1, None),
    ("#0 c d >0 b >1 a >2 w2 w0 w1 end", 1, None),
    ("#0 b d c >0 >1 a >2 w0 w1 w2 end", 1, None),
    ("#0 d c b a #1 d c >0 b >1 a >2 w0 w1 w2 end", 2, None),
    ("#0 d b a >0 >1 >2 w0 w1 w2 end", 1, None),  # c has no gradient here
    (">0 >1 >2 w0 w1 w2 end", 0, None),
    ("#0 d c >0 b a", 1, None),  # not ended
    ("#0 d c >0 b a #1 d c b a >1 >2 w0 w1 w2 end", 2, "accumulating"),
    ("#0 d >0:c c b >1 a >2 w0 w1 w2 end", 1, "early"),
    ("#0 b >1 d c >0 a >2 w0 w1 w2 end", 1, "order"),
    ("#0 d c >0 b >1 a >2 >0 w0 w1 w2 end", 1, "repeated"),
    ("#0 d c >0 b >1 w0 w1 end", 1, "missing"),
    ("#0 d c >0 b >1 a w0 w1 end", 1, "left full"),
    ("#0 d >?:d c b a end", 1, "single"),
    ("#0 d >? c b a end", 1, "size"),
    ("#0 d c !0 b !1 a !2 end", 1, "blocking"),
    ("#0 d c b a >0 >1 >2 w0 w1 w2 end", 1, "after"),
    ("#0 b d c >0 a >1 >2 w0 w1 w2 end", 1, "late"),
    ("#0 d c >0 w0 b >1 a >2 w1 w2 end", 1, "waits"),
    ("#0 d c >0 b >1 a w0 >2 w1 w2 end", 1, "between"),
    ("#0 d c >0 a w0 >1 w1 >2 w2 end", 1, "between"),
    ("!0 >1 >2 w1 w2 end", 0, "between"),
    ("#0 d c >0 a >1 !2 w0 w1 end", 1, None),
    ("#0 d c >0 b >1 a >2 w0 w2 end", 1, "never waits"),
]


@pytest.mark.parametrize("words, microbatches, kind", STEPS)
def test_the_first_misstep_is_found_and_what_is_right_has_none(
    words, microbatches, kind
):
    found = first_misstep(seen(words), BUCKETS, microbatches)
    assert (found and found.kind) == kind


def test_without_hooks_only_what_is_sent_counts():
    step = seen("#0 !1 !0 !2 end")
    assert wrong_calls(step, BUCKETS) is None
    assert accumulating(step, 1) is None
    assert accumulating(step, 2).kind == "accumulating"


def test_what_happened_around_a_misstep_is_told_with_it_in_brackets():
    assert around(seen("#0 d c >0 w0 b"), 4) == (
        "microbatch 1 · d · c · start 0 · [wait 0] · b"
    )


def test_an_all_reduce_of_no_bucket_is_told_as_that():
    step = seen("#0 d >? !? end")
    shown = "microbatch 1 · d · [start of no bucket] · all_reduce of no bucket · end"
    assert around(step, 2) == shown
    assert calls_of(step) == ["no bucket", "no bucket"]


@pytest.mark.parametrize("words, later", [
    ("#0 d >0 c b >1 >2 a >3 end", "started 1 gradient later."),
    ("#0 d >0 c b a >1 >2 >3 end", "started 2 gradients later."),
])  # fmt: skip
def test_how_much_later_a_bucket_was_started_is_counted(words, later):
    found = first_misstep(seen(words), [["d"], ["c"], ["b"], ["a"]], 1)
    assert found.kind == "late" and found.told.endswith(later)


def test_ranks_differ_in_the_first_step_whose_orders_do():
    one, other, behind = seen("!0 !1 !2 end"), seen("!0 !2 !1"), seen("!0")
    assert disagreement([[one, one], [one, other]]) == (
        1,
        [["0", "1", "2"], ["0", "2", "1"]],
    )
    assert disagreement([[one, one], [one, behind]]) is None
    assert disagreement([[], [one], [behind], [other]]) == (
        0,
        [[], ["0", "1", "2"], ["0"], ["0", "2", "1"]],
    )
    assert disagreement([[one], []]) is None


def test_notes_are_read_by_step_and_what_comes_before_the_first_is_not():
    step, start = Seen("step", []), Seen("start", ["1", "b"])
    assert steps_of([start, step, start, step]) == [[start], []]
    assert steps_of([start]) == []
