"""Exported scripts: notebooks to export from, and torchrun to start them."""

import ast
import json
import os
import subprocess
import sys

from distlab.commands.exporting.script import script_of
from distlab.commands.exporting.sources import exported_name, notebook_source


def notebook(path, cells, function="train"):
    """Write a notebook of code cells, name -> text, that exports `function`."""
    fields = {"metadata": {}, "outputs": [], "execution_count": None}
    written = [
        {"cell_type": "code", "id": name, "source": text, **fields}
        for name, text in cells.items()
    ]
    metadata = {"distlab": {"export": function}} if function else {}
    text = {"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(text))
    return path


def script(path):
    """Return the text of the script of a notebook."""
    function = exported_name(path)
    return script_of(notebook_source(path), function, path.stem, "train.py")


def under_torchrun(text, folder, ranks, *options):
    """Start the script where distlab cannot be imported; return what it printed."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(text)
    (folder / "distlab.py").write_text("raise ImportError('there is no distlab here')")
    torchrun = ["-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", str(ranks)] if ranks else []
    done = subprocess.run(
        [sys.executable, *(torchrun if ranks else ()), "train.py", *options],
        cwd=folder,
        env={
            **{
                name: value
                for name, value in os.environ.items()
                if name != "PYTHONPATH"
            },
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        },
        capture_output=True,
        text=True,
        timeout=150,
    )
    return done


def in_the_notebook(path):
    """Return the exported function as the notebook has it, on distlab's own models."""
    namespace = {"__name__": "a_lesson"}
    kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        for node in ast.parse("".join(cell["source"])).body:
            constant = isinstance(node, ast.Assign) and not any(
                isinstance(each, ast.Call | ast.Name) for each in ast.walk(node.value)
            )
            if constant or isinstance(node, kinds):
                exec(ast.unparse(node), namespace)
    return namespace[exported_name(path)]
