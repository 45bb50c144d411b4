"""The notebook in which this process runs, if any: its cell, its person, its output."""

import sys

__all__ = ["cell_number", "person_is_there", "show", "show_text"]


def cell_number() -> int | None:
    """Return the number of the cell that runs now; None outside a notebook.

    A plain script and a terminal display nothing: they print text.
    """
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return shell.execution_count if hasattr(shell, "kernel") else None


def person_is_there() -> bool:
    """Return True if a person runs this notebook, who could answer a question.

    nbclient, papermill and nbgrader declare that no input is possible.
    """
    if cell_number() is None:
        return False
    from IPython import get_ipython

    return bool(getattr(get_ipython().kernel, "_allow_stdin", False))


def show(bundle: dict):
    """Show a bundle (mime type to data) in the cell; return a handle to change it."""
    from IPython.display import display

    return display(bundle, raw=True, display_id=True)


def show_text(text: str, html: str) -> None:
    """Show a text: as HTML in a notebook, printed elsewhere."""
    if cell_number() is None:
        print(text)
    else:
        show({"text/plain": text, "text/html": html})
