"""Reports with a table: one look in HTML, and nothing of a learner's is markup."""

from IPython.lib.pretty import pretty

from distlab import Operation
from distlab.show.table import html_report, text_report

ROWS = [("rank", "sent"), ("0", "<b>"), ("1", "12 B")]


def test_a_report_is_the_same_in_text_and_in_html():
    text = text_report("2 ranks", ROWS, "<>", ["a note"])
    assert text.endswith("  rank  sent\n  0      <b>\n  1     12 B\na note")
    page = html_report("2 ranks", ROWS, "<>", ["a note"], signs=[("●", "red")] * 2)
    assert "<b>2 ranks</b>" in page and "&lt;b&gt;" in page and "a note" in page
    assert page.count("<tr>") == page.count("scope=row") + 1 == 3
    assert "data-jp-theme-light=false" in page  # dark where the page is


def test_a_notebook_says_an_operation_in_a_line():
    read = Operation("you", "read", "stock", None, 0.22015, 0.25323, "ok", 5)
    assert pretty(read) == "you: read 'stock' → 5 (called at 220 ms, ok at 253 ms)"
    lost = Operation(1, "write", "x", 3, 0.5, None, "unknown")
    assert pretty(lost) == "client 1: write 'x' 3 (called at 500 ms, unknown)"
