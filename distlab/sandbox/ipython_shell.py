"""The cells' shell: IPython without a kernel, whose outputs are lists of plain data."""

import ast
import contextlib
import os
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

__all__ = ["Shell", "defined"]

_FULL = "\n... more was printed than is kept ...\n"


class Shell:
    """An IPython shell that runs cells one after another.

    most_bytes: of one cell's printed output. user_ns: the cells' namespace.
    broken: name -> the error of the cell that should define it.
    """

    def __init__(self, most_bytes: int):
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "nocolor"
        config.InteractiveShell.autoindent = False
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        self._shell = InteractiveShell.instance(
            config=config, displayhook_class=_Hook, display_pub_class=_Publisher
        )
        self._shell.compile.get_code_name = lambda raw, code, number: f"<cell {number}>"
        self._shell.compile.format_code_name = lambda name: ("Cell", name[6:-1])
        self._shell._showtraceback = self._show_error
        self._shell._tee = lambda channel: contextlib.nullcontext()  # keeps all of it
        bundles = self._shell.display_formatter.mimebundle_formatter
        bundles.for_type_by_name("distlab.show.canvas.picture", "Picture", _pixels)
        self.user_ns, self.broken = self._shell.user_ns, {}
        self._most_bytes = most_bytes

    def run(self, source: str, number: int) -> list[dict]:
        """Run a cell; return its outputs in the format of a notebook."""
        _collected.clear()
        self._left = self._most_bytes
        self._shell.execution_count = number
        streams = _Stream("stdout", self), _Stream("stderr", self)
        out, err = contextlib.redirect_stdout, contextlib.redirect_stderr
        with out(streams[0]), err(streams[1]):
            result = self._shell.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        for name in defined(source):
            self.broken.pop(name, None)
            if error is not None and name not in self.user_ns:
                self.broken[name] = f"{type(error).__name__}: {error}"[:300]
        return list(_collected)

    def write(self, name: str, text: str) -> None:
        """Add text to a stream's output, up to the limit."""
        if self._left < 0:
            return
        self._left -= len(text)
        if self._left < 0:
            text = text[: self._left] + _FULL
        if not text:
            return
        last = _collected[-1] if _collected else {}
        if last.get("name") == name:
            last["text"] += text
        else:
            _collected.append({"output_type": "stream", "name": name, "text": text})

    def _show_error(self, kind, error, lines):
        described = {
            "output_type": "error",
            "ename": str(kind.__name__),
            "evalue": str(error),
        }
        _collected.append(described | {"traceback": [str(line) for line in lines]})


def _pixels(picture, **_):
    """Draw a picture once: its page is not among what `safe_outputs` keeps."""
    return picture.pixels()


_collected = []  # of the cell that runs


class _Stream:
    """Standard output or error of a cell."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, name, shell):
        self.name, self._shell = name, shell

    def write(self, text):
        self._shell.write(self.name, str(text))
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def fileno(self):
        return sys.__stdout__.fileno()


class _Publisher(DisplayPublisher):
    """A publisher that collects a cell's displays."""

    def publish(self, data, metadata=None, **_):
        """Collect one display."""
        show = {"output_type": "display_data", "data": dict(data), "metadata": {}}
        _collected.append(show)

    def clear_output(self, wait=False):
        """Drop the cell's displays."""
        _collected.clear()


class _Hook(DisplayHook):
    """A display hook that collects the value of a cell's last line."""

    def write_output_prompt(self):
        """Print no prompt."""

    def write_format_data(self, format_dict, md_dict=None):
        """Collect the value, in all its formats."""
        value = {"output_type": "execute_result", "data": dict(format_dict)}
        value |= {"metadata": {}, "execution_count": self.shell.execution_count}
        _collected.append(value)

    def log_output(self, format_dict):
        """Log nothing."""


def defined(source: str) -> set[str]:
    """Return the names that a cell defines at its top level."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):  # then those after `def` and `class`
        lines = source.replace("(", " ").replace(":", " ").split("\n")
        words = [line.split() for line in lines]
        return {w[1] for w in words if len(w) > 1 and w[0] in ("def", "class")}
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        names |= {
            each.id
            for target in getattr(node, "targets", ())
            for each in ast.walk(target)
            if isinstance(each, ast.Name)
        }
    return names
