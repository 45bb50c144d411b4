"""Messages in a notebook: prose that wraps, tables that don't, formulas."""

import re

from distlab.calls.message_html import lines_html, plain, typeset


def test_prose_wraps_within_its_indent_and_a_table_keeps_its_columns():
    table = "    rank  load\n       0    20\n" + " " * 20 + "2 4"
    shown = lines_html(f"✗ one: fail\n    too <much>\n{table}")
    found = re.findall(r'<pre style="([^"]*)">([^<]*)</pre>', shown)
    assert [text for _, text in found] == ["✗ one: fail", "too &lt;much&gt;", table]
    wraps = [("white-space:pre-wrap" in style) for style, _ in found]
    assert wraps == [True, True, False]
    assert "word-break:normal" in found[0][0] and "padding-left:4ch" in found[1][0]


def test_a_formula_is_typeset_in_html_and_readable_without():
    text = "A tree takes $2⌈log₂ n⌉$ rounds, and a < b."
    assert plain(text) == "A tree takes 2⌈log₂ n⌉ rounds, and a < b."
    assert typeset(text, r"\({}\)") == (
        r"A tree takes \(2⌈\log_2 n⌉\) rounds, and a &lt; b."
    )
