"""Connections to PostgreSQL: psycopg's own, and one of a client that is recorded.

An operation "failed" if no connection could be made, or if the server returned an
error, which rolls the transaction back. One such is 40001, for a transaction that would
violate serializability. Where the connection broke off before the response, the
transaction may have been committed: "unknown".
"""

import json
import os
import socket
from typing import Any

from distlab.engines.store_clients import NoAnswer, Refused, as_text, as_value
from distlab.errors import InvalidArgument
from distlab.trace import Call

__all__ = ["LEVELS", "PostgresConnection", "connection"]

LEVELS = ("read committed", "repeatable read", "serializable")


def connection(folder: str, isolation: str, timeout_s: float):
    """Return a `psycopg.Connection` whose transactions have this isolation level.

    timeout_s: time limit of connecting, at least two seconds.
    Raises: InvalidArgument for an unknown level; psycopg.OperationalError.
    """
    import psycopg

    if isolation not in LEVELS:
        raise InvalidArgument(f"isolation is one of {LEVELS}, and got {isolation!r}.")
    level = isolation.replace(" ", "\\ ")
    return psycopg.connect(
        host=folder,
        port=5432,
        user="postgres",
        dbname="postgres",
        options=f"-c default_transaction_isolation={level}",
        connect_timeout=max(2, int(timeout_s)),
    )


class PostgresConnection:
    """One connection of psycopg's, on which every call is a transaction."""

    def __init__(self, folder, isolation, timeout_s):
        import psycopg

        try:
            self._sql = connection(folder, isolation, timeout_s)
        except psycopg.OperationalError as error:
            raise Refused(f"no connection: {error}") from error
        self._sql.autocommit = True

    def ask(self, call: Call) -> Any:
        """Run a call as one transaction; return its result."""
        import psycopg

        try:
            return self._ask(call, as_text(call.key))
        except psycopg.Error as error:
            if error.diag.severity_nonlocalized == "ERROR":  # and so rolled back
                raise Refused(f"{error.sqlstate}: {error}") from error
            raise NoAnswer(str(error)) from error

    def _ask(self, call, key):
        if call.op == "read":
            found = self._sql.execute("select value from kv where key = %s", [key])
            row = found.fetchone()
            return None if row is None else json.loads(row[0])
        insert = "insert into kv values (%s, %s) on conflict (key) do "
        if call.op == "write":
            update = insert + "update set value = excluded.value"
            self._sql.execute(update, [key, as_value(call.value)])
            return None
        if call.op == "cas":
            old, new = call.value
            if old is None:
                done = self._sql.execute(insert + "nothing", [key, as_value(new)])
            else:
                update = "update kv set value = %s where key = %s and value = %s"
                values = [as_value(new), key, as_value(old)]
                done = self._sql.execute(update, values)
            return done.rowcount == 1
        raise InvalidArgument(
            f"postgres is asked to read, write or cas, and got {call!r}."
        )

    def abort(self) -> None:
        """Make a call that waits in another thread raise NoAnswer."""
        import psycopg

        try:
            with socket.socket(fileno=os.dup(self._sql.fileno())) as same:
                same.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.OperationalError):
            pass  # it has ended

    def close(self) -> None:
        """Close the connection."""
        self._sql.close()
