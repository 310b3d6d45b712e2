"""LanceDB over the vectors of an index (``settings.vector_store``): a table in the base, or in a folder of many.

It looks at every vector, so what it finds is exact: 0.12 s for 100,000 vectors of 512 numbers, ten times as long for a
million.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from workbench.errors import KnowledgeError
from workbench.knowledge.indexes.stores import LOCAL, Damaged, Place, Store

if TYPE_CHECKING:
    import numpy as np


class Lance(Store):
    """The LanceDB table of one base: an open one stays at the version at which it was opened."""

    def __init__(self, place: Place, name: str = LOCAL, *, make: bool = True):
        import lancedb

        self.place = place
        self._name = name
        with self._answering():
            self._db: Any = lancedb.connect(str(place.folder))
            try:
                self._table: Any = self._db.open_table(name)
            except ValueError:  # made with the first vectors, whose length it has
                self._table = None
            if self._table is None and not make:
                raise KnowledgeError(
                    f"The LanceDB at {place.folder} has lost the vectors of this base. The index itself is whole: "
                    "run the `workbench kb add` again."
                )
            self._count = self.count()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, OSError, ValueError) as error:
            raise Damaged(self.place, error) from error

    def close(self) -> None:
        """Release the files."""
        self._table = self._db = None

    def count(self) -> int:
        """Return the number of vectors."""
        return self._table.count_rows() if self._table is not None else 0

    def put(self, ids: Sequence[str], keys: Sequence[str], rows: np.ndarray) -> None:
        """Store these vectors under these ids, in one step."""
        import pyarrow

        flat = pyarrow.array(rows.ravel(), pyarrow.float32())
        column = pyarrow.FixedSizeListArray.from_arrays(flat, rows.shape[1])
        table = pyarrow.table({"id": list(ids), "key": list(keys), "vector": column})
        if self._table is None:
            self._table = self._db.create_table(self._name, schema=table.schema, exist_ok=True)
        merge = (
            self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        )
        merge.execute(table)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete these ids; in a text of SQL only the quote has a meaning, and it is doubled."""
        if self._table is not None:
            self._table.delete(f"id IN ({', '.join(quoted(vector_id) for vector_id in ids)})")

    def stored_keys(self) -> Iterator[tuple[str, str]]:
        """Yield every id, with the key of its vector."""
        if self._table is not None:
            for row in (
                self._table.search().select(["id", "key"]).limit(max(1, self.count())).to_list()
            ):
                yield row["id"], row["key"]

    def nearest(self, query: np.ndarray, wanted: int) -> Sequence[str]:
        """Return the nearest by cosine, of all."""
        query_result = (
            self._table.search(query)
            .distance_type("cosine")
            .select(["id", "_distance"])
            .limit(wanted)
        )
        return [row["id"] for row in query_result.to_list()]

    def compact(self) -> None:
        """Join what many writes left in many files, and drop what is older."""
        if self._table is not None:
            # another process may be reading an older version
            self._table.optimize(cleanup_older_than=timedelta(minutes=10))

    def remove(self) -> None:
        """Delete the table."""
        with self._answering():
            self._db.drop_table(self._name, ignore_missing=True)


def quoted(text: str) -> str:
    """Return a text as SQL writes it.

    >>> quoted("x' OR '1'='1")
    "'x'' OR ''1''=''1'"
    """
    return "'" + text.replace("'", "''") + "'"
