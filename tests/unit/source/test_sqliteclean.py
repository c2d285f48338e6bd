"""Databases that hold work and logins: the rows go, the work stays, and no page remembers."""
# ruff: noqa: S311, S608 - seeds and statements of a test

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine
from durarepo.source.sqliteclean import Cleaned, clean, connect_memory
from tests.policy.fresh import text

POLICY = ContentPolicy(open_engine())
SECRET = text(random.Random(3), 60)
TOKEN = "gh" + "p_" + text(random.Random(4), 36)


def database(path: Path, *statements: str) -> bytes:
    """Return the bytes of a real database made by these statements."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


def cleaned(path: Path, *statements: str, name: bytes = b"any.db") -> tuple[Cleaned, bytes]:
    """Clean a database of these statements; return what was done, and its bytes after it."""
    with closing(connect_memory(database(path, *statements))) as connection:
        return clean(connection, name, POLICY), connection.serialize()


def test_login_rows_go_and_chats_stay(tmp_path: Path) -> None:
    """Deleted rows live on in free pages until the file is vacuumed."""
    data = database(
        tmp_path / "db",
        "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)",
        f"INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', '{SECRET * 200}')",
        f"INSERT INTO ItemTable VALUES ('secret://ext', '{SECRET}')",
        "INSERT INTO ItemTable VALUES ('composer.data', '{\"chats\": 1}')",
        f"INSERT INTO ItemTable VALUES ('chat', CAST('{{\"text\": \"use {TOKEN} now\"}}' AS BLOB))",
    )
    with closing(connect_memory(data)) as connection:
        done = clean(connection, b"state.vscdb", POLICY)
        after = connection.serialize()
        rows = connection.execute("SELECT key, value FROM ItemTable ORDER BY key").fetchall()
        check = connection.execute("PRAGMA integrity_check").fetchone()

    assert done.judged.decision is Decision.REDACT
    assert done.rows == (("sqlite-editor-login", 2), ("sqlite-editor-text", 1))
    assert SECRET.encode() not in after
    assert TOKEN.encode() not in after
    assert check == (b"ok",)
    assert rows == [
        (b"chat", b'{"text": "use withheld(token-github) now"}'),
        (b"composer.data", b'{"chats": 1}'),
    ]


def test_a_row_that_was_deleted_before_is_not_kept_in_free_pages(tmp_path: Path) -> None:
    """The login of last week is still a login."""
    path = tmp_path / "db"

    _, after = cleaned(
        path,
        "PRAGMA secure_delete = OFF",
        "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)",
        f"INSERT INTO ItemTable VALUES ('x', '{SECRET * 400}')",
        "DELETE FROM ItemTable",
        name=b"state.vscdb",
    )

    assert SECRET.encode() in path.read_bytes()
    assert SECRET.encode() not in after


def test_a_token_in_a_database_of_unknown_form_leaves_it_out(tmp_path: Path) -> None:
    """In a page a value follows the one before without a gap; cells are looked at one by one."""
    done, _ = cleaned(
        tmp_path / "db",
        "CREATE TABLE things (a TEXT, b TEXT)",
        f"INSERT INTO things VALUES ('name', '{TOKEN}')",
    )

    assert done.judged.decision is Decision.EXCLUDE
    assert done.judged.rules == ("token-github",)


def test_cookie_stores_are_known_by_their_schema(tmp_path: Path) -> None:
    """A browser's store under another name is the same store."""
    done, _ = cleaned(
        tmp_path / "db",
        "CREATE TABLE cookies (host_key TEXT, name TEXT, encrypted_value BLOB)",
        name=b"work.db",
    )

    assert done.judged.decision is Decision.EXCLUDE
    assert done.judged.rule == "sqlite-cookies-chromium"


def test_a_clean_database_is_not_touched(tmp_path: Path) -> None:
    """A copy that is vacuumed for nothing would never deduplicate."""
    path = tmp_path / "db"

    done, after = cleaned(
        path, "CREATE TABLE notes (a TEXT)", "INSERT INTO notes VALUES ('plan')", name=b"notes.db"
    )

    assert done.judged.decision is Decision.INCLUDE
    assert after[100:] == path.read_bytes()[100:]


def cleaned_of(path: Path, *statements: str) -> Decision:
    """Clean an editor's database made by these statements; return what became of it."""
    done, _ = cleaned(path, *statements, name=b"state.vscdb")
    return done.judged.decision


@pytest.mark.parametrize(
    "beside",
    [
        "CREATE TRIGGER t BEFORE DELETE ON ItemTable BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER t AFTER DELETE ON ItemTable BEGIN DELETE FROM work; END",
        "CREATE VIRTUAL TABLE found USING fts5(value, content='ItemTable')",
    ],
)
def test_where_a_change_would_change_more_the_database_is_left_out(
    tmp_path: Path, beside: str
) -> None:
    """A trigger can keep the login, copy it, or take other rows with it; an index keeps words."""
    decision = cleaned_of(
        tmp_path / "db",
        "CREATE TABLE work (draft TEXT)",
        "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)",
        f"INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', '{SECRET}')",
        beside,
    )

    assert decision is Decision.EXCLUDE


def test_a_column_named_like_the_number_of_a_row_hits_no_other_row(tmp_path: Path) -> None:
    """Then `WHERE rowid = 1` names other rows than the one that was read."""
    decision = cleaned_of(
        tmp_path / "db",
        "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB, rowid INTEGER)",
        f"INSERT INTO ItemTable VALUES ('chat', CAST('use {TOKEN} now' AS BLOB), 1)",
        "INSERT INTO ItemTable VALUES ('other', CAST('work' AS BLOB), 1)",
    )

    assert decision is Decision.EXCLUDE


def test_the_case_of_a_tables_name_changes_nothing(tmp_path: Path) -> None:
    """SQLite finds `ItemTable` under any case, and so does whoever looks for a login."""
    decision = cleaned_of(
        tmp_path / "db",
        "CREATE TABLE ITEMTABLE (KEY TEXT UNIQUE, VALUE BLOB)",
        f"INSERT INTO ITEMTABLE VALUES ('cursorAuth/accessToken', '{SECRET}')",
    )

    assert decision is Decision.REDACT


def test_a_token_in_the_schema_is_found(tmp_path: Path) -> None:
    """A view is text as well, and longer than a page it is in no cell and in no page whole."""
    decision = cleaned_of(
        tmp_path / "db",
        "CREATE TABLE work (draft TEXT)",
        f"CREATE VIEW v AS SELECT '{'x ' * 2020}{TOKEN}{' y' * 2000}' AS text",
    )

    assert decision is Decision.EXCLUDE


def test_what_is_no_database_is_left_out() -> None:
    """What cannot be looked at cell by cell cannot be vouched for."""
    with closing(connect_memory(b"SQLite format 3\0" + bytes(4080))) as connection:
        assert clean(connection, b"x.db", POLICY).judged.rule == "sqlite-unreadable"
