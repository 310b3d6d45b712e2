"""Tables made anew beside those of an index: the same rows and indexes in the end, and nothing of a failed making."""

from __future__ import annotations

import sqlite3

import pytest

from workbench.errors import WorkspaceFull
from workbench.knowledge.adding.growing import made_beside
from workbench.knowledge.indexes.index import Index

TABLES = ("relations", "mentions")
OLD, NEW = ("old", "a", "is", "b", "", "p"), [(f"r{n}", f"s{n}", "is", f"t{n % 7}", "", "p") for n in (5, 1, 3)]


@pytest.fixture
def index(tmp_path):
    index = Index(tmp_path / "index.db", create=True)
    index.connection().execute("INSERT INTO relations VALUES (?, ?, ?, ?, ?, ?)", OLD)
    yield index
    index.close()


def schema(index):
    return sorted(index.rows("SELECT type, name, tbl_name, sql FROM main.sqlite_master"))


def others_see(index):
    with sqlite3.connect(index.path) as other:
        return other.execute("SELECT * FROM relations ORDER BY 1").fetchall()


def test_what_is_made_replaces_what_was_with_its_indexes(index):
    before = schema(index)
    with index.transaction() as connection:
        with made_beside(connection, TABLES, 1024):
            assert index.rows("SELECT * FROM relations") == []
            connection.executemany("INSERT INTO relations VALUES (?, ?, ?, ?, ?, ?)", NEW)
            connection.execute("INSERT INTO mentions VALUES ('e', 'p')")
            assert index.rows("SELECT relation_id FROM relations WHERE target = 't5'") == [("r5",)]
            assert others_see(index) == [OLD]
        assert index.rows("SELECT * FROM relations") == sorted(NEW)
        assert others_see(index) == [OLD]
    assert others_see(index) == sorted(NEW) and index.rows("SELECT * FROM mentions") == [("e", "p")]
    assert schema(index) == before
    (plan,) = index.rows("EXPLAIN QUERY PLAN SELECT 1 FROM relations WHERE target = 't1'")
    assert "relations_by_target" in plan[-1]
    assert index.rows("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("through_the_index", [True, False])
def test_no_room_for_the_temporary_file_names_its_folder_and_leaves_everything(index, through_the_index):
    rows = [(f"r{n}", "s", "is", "t", "x" * 1000, "p") for n in range(500)]
    insert = "INSERT INTO relations VALUES (?, ?, ?, ?, ?, ?)"
    with (
        pytest.raises(WorkspaceFull, match="SQLITE_TMPDIR names another folder"),
        index.transaction() as connection,
        made_beside(connection, TABLES, 1024),
    ):
        connection.execute("PRAGMA temp.max_page_count = 50")
        for row in rows:
            (index.rows if through_the_index else connection.execute)(insert, row)
    assert index.rows("SELECT * FROM relations") == [OLD] == others_see(index)


def test_a_making_that_fails_leaves_everything_as_it_was(index):
    before = schema(index)
    with pytest.raises(ZeroDivisionError), index.transaction() as connection, made_beside(connection, TABLES, 1024):
        connection.executemany("INSERT INTO relations VALUES (?, ?, ?, ?, ?, ?)", NEW)
        raise ZeroDivisionError
    assert index.rows("SELECT * FROM relations") == [OLD] and schema(index) == before
    with index.transaction() as connection, made_beside(connection, TABLES, 1024):
        connection.executemany("INSERT INTO relations VALUES (?, ?, ?, ?, ?, ?)", NEW)
    assert others_see(index) == sorted(NEW)
