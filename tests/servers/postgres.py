"""A throw-away PostgreSQL on loopback."""

import contextlib
import getpass
import glob
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from tests.servers import free_port


def _postgres_bin() -> pathlib.Path | None:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    path = shutil.which("initdb") or (found[-1] if found else None)
    return pathlib.Path(path).parent if path else None


@contextlib.contextmanager
def postgres_server() -> Iterator[str | None]:
    """A throw-away PostgreSQL on a free loopback port: its DSN, or None where PostgreSQL is not installed.

    PostgreSQL refuses to run as root; then it runs as the user ``postgres``.
    """
    programs = _postgres_bin()
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if programs is None or (as_user and not shutil.which("setpriv")):
        yield None
        return
    owner = "postgres" if as_user else getpass.getuser()
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if as_user:
            shutil.chown(folder, owner)
        data = f"{folder}/data"

        def run(program: str, *arguments: str) -> None:
            command = [*as_user, str(programs / program), *arguments]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120)

        run("initdb", "-D", data, "-U", owner, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://{owner}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
