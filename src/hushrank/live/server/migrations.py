"""How the file of an older hushrank becomes a newer one, step by step.

Step i makes version i + 2 of version i + 1. A step is never changed once it was released, so it names tables and
columns as they were then, and knows nothing of `schema.py`; a test compares a migrated file with a new one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sqlalchemy as sa
from safetensors.numpy import save

Migration = Callable[[sa.Connection], None]
_MEMORY = ("first", "second", "n_steps")  # of the server's optimiser in version 1, float32


def name_what_is_stored(connection: sa.Connection) -> None:
    """Version 2: the server's memory is named arrays, and an update belongs to a phase of its round."""
    run = connection.exec_driver_sql
    run(
        "CREATE TABLE new_rankers (round INTEGER NOT NULL, params BLOB NOT NULL, state BLOB NOT NULL, "
        "PRIMARY KEY (round))"
    )
    for round, params, *parts in run("SELECT round, params, first, second, n_steps FROM rankers").fetchall():
        arrays = {f"optimiser/{name}": np.frombuffer(part, "<f4") for name, part in zip(_MEMORY, parts, strict=True)}
        run("INSERT INTO new_rankers VALUES (?, ?, ?)", (round, params, save(arrays)))
    run(
        "CREATE TABLE new_updates (round INTEGER NOT NULL, phase VARCHAR(16) NOT NULL, client INTEGER NOT NULL, "
        "weight INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB, PRIMARY KEY (round, phase, client)) WITHOUT ROWID"
    )
    run("INSERT INTO new_updates SELECT round, 'update', client, weight, digest, body FROM updates")
    for table in ("rankers", "updates"):
        run(f"DROP TABLE {table}")
        run(f"ALTER TABLE new_{table} RENAME TO {table}")


def remember_starts(connection: sa.Connection) -> None:
    """Version 3: the server's starts, rounds that clients have seen and the file lacks, and lengths of updates."""
    run = connection.exec_driver_sql
    run(
        "CREATE TABLE starts (number INTEGER NOT NULL, name VARCHAR(16) NOT NULL, round INTEGER NOT NULL, "
        "PRIMARY KEY (number), UNIQUE (name))"
    )
    run("CREATE TABLE missing (round INTEGER NOT NULL, decided_at FLOAT, PRIMARY KEY (round))")
    run(
        "CREATE TABLE lengths (round INTEGER NOT NULL, median FLOAT NOT NULL, longest FLOAT NOT NULL, "
        "least_cosine FLOAT NOT NULL, step FLOAT NOT NULL, PRIMARY KEY (round))"
    )


def forget_whose_token(connection: sa.Connection) -> None:
    """Version 4: tokens that were used are gone, and with them who used which; what did not count is counted."""
    run = connection.exec_driver_sql
    run("CREATE TABLE new_tokens (hash BLOB NOT NULL, expires_at FLOAT NOT NULL, PRIMARY KEY (hash))")
    run("INSERT INTO new_tokens SELECT hash, expires_at FROM tokens WHERE client IS NULL")
    run("DROP TABLE tokens")
    run("ALTER TABLE new_tokens RENAME TO tokens")
    run("ALTER TABLE clients ADD COLUMN refused INTEGER DEFAULT '0' NOT NULL")
    run(
        "CREATE TABLE seen (client INTEGER NOT NULL, round INTEGER NOT NULL, phase VARCHAR(16) NOT NULL, "
        "digest BLOB NOT NULL, PRIMARY KEY (client, round, phase, digest)) WITHOUT ROWID"
    )


def remember_evidence(connection: sa.Connection) -> None:
    """Version 5: what an aggregation rule said of rounds and clients."""
    run = connection.exec_driver_sql
    run(
        "CREATE TABLE evidence (round INTEGER NOT NULL, name VARCHAR(64) NOT NULL, value FLOAT NOT NULL, "
        "PRIMARY KEY (round, name)) WITHOUT ROWID"
    )
    run(
        "CREATE TABLE trust (client INTEGER NOT NULL, round INTEGER NOT NULL, trust FLOAT NOT NULL, "
        "low_since INTEGER, n_low INTEGER NOT NULL, PRIMARY KEY (client))"
    )


def remember_forgetting(connection: sa.Connection) -> None:
    """Version 6: clients that want to be forgotten, and how far that is; rounds that replay earlier ones."""
    run = connection.exec_driver_sql
    run("ALTER TABLE rounds ADD COLUMN stands_for INTEGER")
    run("ALTER TABLE updates ADD COLUMN is_filled INTEGER DEFAULT '0' NOT NULL")
    run(
        "CREATE TABLE wishes (client INTEGER NOT NULL, pseudonym VARCHAR(16) NOT NULL, wished_at FLOAT NOT NULL, "
        "forgetting INTEGER, PRIMARY KEY (client), UNIQUE (pseudonym))"
    )
    run(
        "CREATE TABLE forgettings (number INTEGER NOT NULL, state VARCHAR(8) NOT NULL, method VARCHAR(16) NOT NULL, "
        "every INTEGER NOT NULL, searches INTEGER NOT NULL, step INTEGER NOT NULL, steps INTEGER NOT NULL, "
        "n_lost INTEGER NOT NULL, n_answers INTEGER NOT NULL, n_filled INTEGER NOT NULL, params BLOB, memory BLOB, "
        "began_at FLOAT NOT NULL, ended_at FLOAT, record TEXT, failure TEXT, PRIMARY KEY (number))"
    )


MIGRATIONS: tuple[Migration, ...] = (
    name_what_is_stored,
    remember_starts,
    forget_whose_token,
    remember_evidence,
    remember_forgetting,
)
