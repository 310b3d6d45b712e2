"""Other processes that run cells of the same experiment: here, or on the workers of a Dask cluster."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from workbench.errors import MissingExtra, WorkbenchError
from workbench.state import Json


@contextmanager
def started(wb: Any, name: str, count: int, dask: str) -> Iterator[None]:
    """Run cells in other processes too while the block does; wait for them at its end.

    Each takes cells from the store until none is free. What one that dies has taken is free again. No secret goes to
    a cluster: its workers have keys in their own environment.

    Raises:
        WorkbenchError: Dask is not installed, or its scheduler does not answer.
    """
    path, values = Path(wb.path).resolve(), wb.settings.model_dump(exclude_unset=True)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=run_cells, args=(path, values, name)) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        if dask:
            with _cluster(dask) as client:
                workers = list(client.scheduler_info(n_workers=-1)["workers"])
                # a worker that dies is replaced
                more = {"allow_other_workers": True, "pure": False}
                bare = {
                    key: value for key, value in values.items() if not isinstance(value, SecretStr)
                }
                arguments = (path, bare, name)
                futures = [
                    client.submit(run_cells, *arguments, workers=[worker], **more)
                    for worker in workers
                ]
                yield
                client.gather(futures, errors="skip")
        else:
            yield
    finally:
        for process in processes:
            process.join()


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("Dask", "dask") from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise WorkbenchError(f"The Dask scheduler {address} does not answer: {error}") from None
    with client:
        yield client


def run_cells(path: Path, values: Json, name: str) -> None:
    """Run cells of an experiment in a process of its own, with these settings."""
    from workbench.session import Workbench

    with Workbench.open(path, **values) as wb:
        wb.experiments.get(name).work()
