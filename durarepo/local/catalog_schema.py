"""The catalogue's tables, made with sqlite-utils; the only importer of that package.

It is imported only when tables are made, since it costs more start-up time than all the rest.
Start at `make_tables`.
"""

import sqlite3

from sqlite_utils import Database

SCHEMA_VERSION = 3


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty catalogue, and note the schema's version."""
    database = Database(connection, execute_plugins=False)
    database.table("facts").create({"name": str, "value": bytes}, pk="name")
    packs = database.table("packs")
    packs.create(
        {
            "id": int,
            "name": bytes,
            "size": int,
            "index_digest": bytes,
            "registry_version": int,
            "plain": int,
            "live": int,
        },
        pk="id",
    )
    packs.create_index(["name"], unique=True)
    database.table("manifests").create(
        {
            "sequence": int,
            "epoch": int,
            "name": bytes,
            "digest": bytes,
            "issued": int,
            "expires": int,
            "type": int,
            "files": int,
            "dirs": int,
            "bytes": int,
            "signer": bytes,
            "complete": int,
            "omissions": int,
        },
        pk="sequence",
    )
    # Without row ids: these are looked up by their key, often.
    connection.executescript(
        """
        CREATE TABLE chunks (
            id BLOB PRIMARY KEY, pack INTEGER NOT NULL, number INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE groups (
            id INTEGER NOT NULL, pack INTEGER NOT NULL, PRIMARY KEY (id, pack)
        ) WITHOUT ROWID;
        CREATE TABLE lists (id BLOB PRIMARY KEY, plaintext BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE dirs (
            path BLOB PRIMARY KEY, tree BLOB NOT NULL, set_hash BLOB NOT NULL,
            record BLOB NOT NULL, entries BLOB NOT NULL, owners BLOB NOT NULL,
            pins BLOB NOT NULL, own BLOB NOT NULL, files INTEGER NOT NULL, bytes INTEGER NOT NULL,
            notes BLOB NOT NULL, sum BLOB NOT NULL
        ) WITHOUT ROWID;
        """
    )
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.commit()
