"""A real Chroma server on loopback, that can be killed and started again on the same files and port."""

import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests import forked
from tests.servers import free_port

PATIENCE_S = 60


class ChromaServer:
    """``chroma run`` over a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start where it does not run, and wait until it answers."""
        if self._process:
            return
        code = "import sys; sys.argv[0] = 'chroma'; from chromadb.cli.cli import app; app()"
        command = [sys.executable, "-c", code, "run", "--path", self.folder]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = forked.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if httpx.get(f"{self.url}/api/v2/heartbeat", trust_env=False).is_success:
                    return
            except httpx.TransportError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
