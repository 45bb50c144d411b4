"""The Sphinx build of the site: its sources, theme, formulas and links."""

import html
import io
import json
import re
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from docutils import nodes
from latex2mathml.converter import convert
from nbconvert.filters import strip_ansi
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from distlab.calls.message_html import FORMULA
from distlab.commands.running.hosted_notebooks import site
from distlab.commands.site.api import api_page, plain_docstring
from distlab.commands.site.pages import lesson_page, local, start_page, with_images
from distlab.errors import DistlabError
from distlab.learner.interview import interview_page
from distlab.learner.quiz.page import anki, review_page
from distlab.learner.quiz.review import selected
from distlab.show.assets import once

__all__ = ["anchor", "build", "setup"]

_WEB = resources.files("distlab.commands.site") / "web"
_IN_OUTPUT = re.compile(re.escape(FORMULA).replace(r"\{\}", "(.+?)"))
_DOCUMENTS = ("docs/interviews", "docs/glossary", "docs/own_scripts")
_DOCUMENTS += ("docs/comparison", "docs/instructors", "docs/architecture")
_DOCUMENTS += ("docs/contributing",)
_SETTINGS = {
    "project": "distlab",
    "language": "en",
    "extensions": ["myst_nb", "sphinx.ext.autodoc", __name__],
    "html_theme": "furo",
    "html_title": "distlab",
    "html_css_files": ["site.css"],
    "html_show_copyright": False,
    "html_show_search_summary": False,  # it fetches pages, which a folder refuses
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_use_index": False,
    "html_math_renderer": "mathml",
    "nb_execution_mode": "off",
    "nb_ipywidgets_js": {},
    "nb_merge_streams": True,
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
    "pygments_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark-high-contrast",
    "myst_enable_extensions": ["colon_fence", "dollarmath"],
    "myst_heading_anchors": 4,
    "myst_heading_slug_func": f"{__name__}.anchor",
    "autodoc_typehints": "none",
    "python_use_unqualified_type_names": True,
}


def build(paths: list[Path], project: Path, to: Path) -> None:
    """Build the site of executed lessons and of the documents of a project in `to`.

    Raises: DistlabError if Sphinx warns, as of a link that leads nowhere.
    """
    with TemporaryDirectory() as folder:
        source, said = Path(folder, "source"), io.StringIO()
        _write_sources(paths, project, source)
        with patch_docutils(), docutils_namespace():
            Sphinx(
                srcdir=source,
                confdir=source,
                outdir=to,
                doctreedir=Path(folder, "doctrees"),
                buildername="html",
                status=None,
                warning=said,
            ).build(force_all=True)
    if said.getvalue():
        raise DistlabError(strip_ansi(said.getvalue()).replace(f"{source}/", ""))


def _write_sources(paths, project, source):
    """Write the sources for Sphinx: lessons/, docs/, other pages, conf.py."""
    docs = [name for name in _DOCUMENTS if (project / f"{name}.md").is_file()]
    pages = {f"lessons/{path.name}" for path in paths} | {f"{name}.md" for name in docs}
    lessons = {path.stem: json.loads(path.read_text("utf-8")) for path in paths}
    for folder in ("lessons", "docs", "beside", "static/outputs"):
        (source / folder).mkdir(parents=True)
    images = source / "static" / "outputs"
    others = ["interview", "review", *docs, "api"]
    readme = local((project / "README.md").read_text("utf-8"), "README.md", pages)
    start = with_images(start_page(lessons, others, readme), images, "")
    (source / "index.md").write_text(start, "utf-8")
    (source / "api.rst").write_text(api_page(lessons.values()), "utf-8")
    cards = [card for card in selected() if card.lesson in lessons]
    ours = {"Review": review_page(cards), "Interview": interview_page(cards)}
    for title, body in ours.items():
        text = f"# {title}\n\n~~~~{{raw}} html\n{once(body)}\n~~~~\n"
        (source / f"{title.lower()}.md").write_text(text, "utf-8")
    (source / "beside" / "distlab-cards.txt").write_text(anki(cards, site()), "utf-8")
    for stem, notebook in lessons.items():
        lesson_page(stem, notebook, pages, images)
        page = source / "lessons" / f"{stem}.ipynb"
        page.write_text(json.dumps(notebook), "utf-8")
    for name in docs:
        text = (project / f"{name}.md").read_text("utf-8")
        page = source / f"{name}.md"
        page.write_text(local(text, f"{name}.md", pages), "utf-8")
    settings = _SETTINGS | {
        "html_favicon": str(_WEB / "favicon.svg"),
        "html_static_path": [str(_WEB), str(source / "static")],
        "html_extra_path": [str(source / "beside")],
    }
    lines = (f"{name} = {value!r}" for name, value in settings.items())
    (source / "conf.py").write_text("\n".join(lines), "utf-8")


def anchor(heading: str) -> str:
    """Return the anchor of a heading as JupyterLab makes it."""
    return heading.replace(" ", "-")


def _formula(display):
    def enter(writer, node):
        formula = convert(node.astext(), display=display)
        box = (
            '<div class="formula" tabindex="0">{}</div>' if display == "block" else "{}"
        )
        writer.body.append(box.format(formula))
        raise nodes.SkipNode

    return enter, None


def _finish(app, pagename, templatename, context, doctree):
    script = (_WEB / "theme.js").read_text("utf-8")
    context["metatags"] = f"{context.get('metatags', '')}<script>{script}</script>"
    body = context.get("body", "")  # its outputs have formulas for MathJax
    in_mathml = _IN_OUTPUT.sub(lambda found: convert(html.unescape(found[1])), body)
    context["body"] = in_mathml


def setup(app: Sphinx) -> None:
    """Register formulas, theme and docstrings; Sphinx calls this as an extension."""
    app.add_html_math_renderer("mathml", _formula("inline"), _formula("block"))
    app.connect("html-page-context", _finish)
    app.connect("autodoc-process-docstring", plain_docstring)
