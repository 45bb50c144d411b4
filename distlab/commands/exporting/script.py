"""A slice of a notebook as the text of a script that torchrun starts."""

import ast
import sys
from collections.abc import Iterable

from distlab.commands.exporting.slicing import Slice, slice_of
from distlab.commands.exporting.sources import Source, definition
from distlab.commands.exporting.statements import Import, Statement
from distlab.errors import DistlabError

__all__ = ["script_of"]

_WIDTH = 88
_OWN_IMPORTS = [Import(name, None, name) for name in ("argparse", "os", "torch")]

_HEADER = '''r"""The training of distlab's lesson {lesson} as a plain PyTorch script.

On one machine, with a rank for each GPU; without GPUs say how many, such as 2:

    torchrun --standalone --nproc-per-node gpu {script}

On two machines, the same line on both; the first one's name is node0 here:

    torchrun --nnodes 2 --nproc-per-node gpu --rdzv-backend c10d \\
        --rdzv-id {lesson} --rdzv-endpoint node0:29500 {script}

Options, such as --{option}, go behind the script's name. Made by `distlab export`.
"""
'''

_MAIN = '''def main():
    """Join the other ranks, train, and leave again; torchrun calls this on each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
{options}    options = vars(parser.parse_args())
    if "LOCAL_RANK" not in os.environ:
        parser.exit(
            2,
            "This script is started by torchrun, once for each rank:\\n"
            f"    torchrun --standalone --nproc-per-node 2 {{__file__}}\\n",
        )
{settings}    backend, device = "gloo", None
    if torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"]):
        backend, device = "nccl", torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(backend, device_id=device)
    try:
        first = torch.distributed.get_rank() == 0
        if first:
            print(f"{{torch.distributed.get_world_size()}} ranks, {{backend}}")
        loss = {call}
        if first:
            print(f"last loss: {{loss:.6f}}")
        torch.distributed.barrier()  # no rank leaves while another still receives
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
'''


_SETTINGS = (
    "    {name} = {kind}(**"
    "{{name: options.pop(name) for name in {kind}.__dataclass_fields__}})\n"
)


def script_of(notebook: Source, function: str, lesson: str, script: str) -> str:
    """Return a script that runs `function`, defined in a cell of `notebook`.

    lesson, script: the lesson's name and the script's, for its header.
    Raises: DistlabError if a name is missing, or does not work without distlab.
    """
    found = notebook.binding(function)
    if found is None or found.imported or not found.is_block:
        raise DistlabError(
            f"{notebook.name} names {function} for export, and no cell defines a "
            "function of that name."
        )
    notebook.run_until_cell_of(found)
    options, settings = _options(notebook, found, function)
    reserved = {"main": "the script itself", **{n.bound: n.bound for n in _OWN_IMPORTS}}
    taken = slice_of(notebook, found, reserved)
    first = options[0][0].replace("_", "-") if options else "help"
    parts = [_HEADER.format(lesson=lesson, script=script, option=first)]
    if taken.future:
        parts.append(f"from __future__ import {', '.join(sorted(taken.future))}\n")
    parts.append(_import_block([*taken.imports, *_OWN_IMPORTS]))
    parts.append(_body(taken))
    made = [_SETTINGS.format(name=name, kind=kind) for name, kind in settings.items()]
    given = [*(f"{name}={name}" for name in settings), "**options"]
    main = _MAIN.format(
        options="".join(map(_argument, options)),
        settings="".join(made),
        call=f"{function}({', '.join(given)})",
    )
    return "\n".join(parts) + "\n\n" + main


def _options(notebook, statement, function):
    """Return the options of a script, and the function's settings: name -> class.

    Settings are a parameter annotated with a dataclass, without a default. An option
    is (name, default, the comment behind it, which is its help).

    Raises: DistlabError for a parameter that no option of a script can set.
    """
    (node,) = ast.parse(statement.text).body
    if not isinstance(node, ast.FunctionDef):
        raise DistlabError(f"{statement.where}: {function} is not a function.")
    given = node.args
    if given.posonlyargs or given.vararg or given.kwarg:
        raise DistlabError(_cannot_call(statement, function, "*args, ** or / in it"))
    positional = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    options, settings = [], {}
    for parameter, default in zip(
        [*given.args, *given.kwonlyargs],
        [*positional, *given.kw_defaults],
        strict=True,
    ):
        kind = ast.unparse(parameter.annotation) if parameter.annotation else ""
        fields = [] if default else _fields(definition(notebook, kind))
        if fields:
            settings[parameter.arg] = kind
        elif default:
            fields = [_option(statement, parameter.arg, default)]
        if not fields or None in fields:
            what = f"={ast.unparse(default)}" if default else " without a default"
            raise DistlabError(_cannot_call(statement, function, parameter.arg + what))
        options += fields
    return options, settings


def _fields(statement):
    """Return an option for each field with a default, [] if it is no class."""
    (node,) = ast.parse(statement.text).body if statement else [None]
    return [
        _option(statement, field.target.id, field.value)
        for field in (node.body if isinstance(node, ast.ClassDef) else ())
        if isinstance(field, ast.AnnAssign) and field.value
    ]


def _option(statement, name, default):
    """Return the option (name, value, help) for a default, None if it is no literal."""
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return None
    line = statement.text.splitlines()[default.lineno - 1]
    meaning = line[default.end_col_offset :].partition("  # ")[2]
    plain = isinstance(value, bool | int | float | str)
    return (name, value, meaning) if plain else None


def _cannot_call(statement, function, what):
    return (
        f"{statement.where}: {function} has {what}. A script calls it with its options "
        "only, so each parameter has a number, a word, True or False as its default: "
        f"def {function}(*, steps=200)."
    )


def _argument(option):
    """Return the lines that add an option to the parser, as a formatter would."""
    name, value, meaning = option
    kind = f"type={type(value).__name__}"
    if isinstance(value, bool):
        kind = "action=argparse.BooleanOptionalAction"
    described = "default: %(default)s"
    if meaning:
        described = f"{meaning.replace('%', '%%')} ({described})"
    given = [f'"--{name.replace("_", "-")}"', kind]
    given += [f"default={_literal(value)}", f"help={_literal(described)}"]
    line = f"    parser.add_argument({', '.join(given)})\n"
    if len(line) > _WIDTH + 1:
        line = f"        {', '.join(given)}\n"
        if len(line) > _WIDTH + 1:
            line = "".join(f"        {each},\n" for each in given)
        line = f"    parser.add_argument(\n{line}    )\n"
    return line


def _literal(value):
    shown = repr(value)
    if isinstance(value, str) and shown[0] == "'" and '"' not in value:
        return f'"{shown[1:-1]}"'
    return shown


def _import_block(imports: Iterable[Import]):
    """Return the imports, each once, those of Python itself first."""
    blocks = []
    for ours in (True, False):
        chosen = {
            each
            for each in imports
            if (each.module.split(".")[0] in sys.stdlib_module_names) == ours
            and each.module != "__future__"
        }
        if chosen:
            blocks.append("".join(_import_lines(chosen)))
    return "\n".join(blocks)


def _import_lines(imports):
    plain = [each for each in imports if not each.name]
    for each in sorted(plain, key=lambda one: (one.module, one.alias or "")):
        renamed = f" as {each.alias}" if each.alias not in (None, each.module) else ""
        yield f"import {each.module}{renamed}\n"
    members = {}
    for each in imports - set(plain):
        renamed = f" as {each.alias}" if each.alias not in (None, each.name) else ""
        members.setdefault(each.module, []).append((each.name, renamed))
    for module in sorted(members):
        names = [name + renamed for name, renamed in sorted(members[module], key=_rank)]
        line = f"from {module} import {', '.join(names)}\n"
        if len(line) > _WIDTH + 1:
            inside = "".join(f"    {name},\n" for name in names)
            line = f"from {module} import (\n{inside})\n"
        yield line


def _rank(member):
    """Return a sort key: constants before classes, and classes before functions."""
    name = member[0]
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name.casefold(), name


def _body(taken: Slice):
    """Return the statements, with the blank lines that belong between them."""
    text, before = "", None
    for each in taken.statements:
        text += _gap(before, each) + each.text + "\n"
        before = each
    return text


def _gap(before: Statement | None, after: Statement):
    if before is None:
        return "\n" if after.is_block else ""
    if before.is_block or after.is_block:
        return "\n\n"
    together = after.where == before.where and after.place == before.place + 1
    return "" if together else "\n"
