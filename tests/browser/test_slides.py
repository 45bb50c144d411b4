"""Slides of a lesson in a browser: they load nothing, turn, and their players play."""

import pytest
from nbformat import v4
from pages import keep

from distlab import predict, show
from distlab.errors import DistlabError
from distlab.instructor.slides import slides_of
from distlab.learner.predictions.form import Form


def _shown(bundle):
    return v4.new_output("display_data", bundle)


@pytest.fixture
def lesson(ring):
    """Return a lesson of a prediction, a player and a table, as a run leaves it."""
    guess = predict("Sent by rank 0?", unit="MB", key="ring")
    player = show.player(ring)._repr_mimebundle_()
    asked, told = Form(guess).bundle(), guess.compare(12)._bundle()
    return v4.new_notebook(
        cells=[
            v4.new_markdown_cell(
                "# 10 · Rings\n\n*What does it cost?*\n\nAbout 3 hours."
            ),
            v4.new_markdown_cell("## Build\n\n### The ring $n-1$"),
            v4.new_code_cell("guess", outputs=[_shown(asked), _shown(told)]),
            v4.new_code_cell("show", id="picture-ring", outputs=[_shown(player)]),
            v4.new_markdown_cell("Each sends $S$.\n\na | b\n---|---\n1 | 2\n3 | 4"),
        ]
    )


def test_slides_load_nothing_turn_and_play(lesson, page, tmp_path):
    requests = []
    page.on("request", lambda asked: requests.append(asked.url))
    (tmp_path / "slides.html").write_text(slides_of(lesson), "utf-8")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto((tmp_path / "slides.html").as_uri())
    page.wait_for_function("Reveal.isReady()")
    seen, player = page.locator("section.present:not(.stack)"), ".distlab-player"

    assert "What does it cost?" in seen.inner_text()
    assert "About 3 hours" not in seen.inner_text()
    page.keyboard.press("ArrowRight")
    assert "Sent by rank 0?" in seen.inner_text() and "in MB" in seen.inner_text()
    assert not page.locator(".answer").evaluate("it => it.closest('.visible')")
    page.keyboard.press("ArrowRight")
    assert page.locator(".fragment.visible .answer").text_content() == "12 MB"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == 2
    assert seen.locator("h2 math").count() == 1
    box = seen.locator(player).bounding_box()
    assert box["y"] > 0 and box["y"] + box["height"] <= 720
    keep(page, "slide-with-a-player")

    page.locator(player).focus()
    page.keyboard.press("ArrowRight")  # a step of the player
    assert float(page.locator(player).get_attribute("data-position")) > 0
    assert page.evaluate("Reveal.getIndices().h") == 2
    seen.locator("h2").click()
    page.keyboard.press("ArrowRight")
    assert seen.locator("td").all_inner_texts() == ["1", "2", "3", "4"]
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)


def test_a_lesson_that_has_not_run_makes_no_slides(lesson):
    for cell in lesson.cells:
        cell.pop("outputs", None)
    with pytest.raises(DistlabError, match="shows no picture"):
        slides_of(lesson)
