"""Warm kernels: each is forked from a process that has everything imported, and has a clean namespace of its own.

A kernel for a notebook starts in a fraction of a second, and shares nothing with the one before: modules, environment,
working folder and random state are as after a start. When this process dies, the server and its kernels end too.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from functools import cache
from typing import Any

import psutil
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

_PRELOADED = (
    "ipykernel.kernelapp", "ipykernel.zmqshell", "ipykernel.debugger", "tornado.platform.asyncio", "pandas",
    "workbench.session", "workbench.parts.experiments.notebook",
)  # fmt: skip
_START = "import atexit, os; atexit.register(os._exit, 0)"
"""Handlers run last to first: after all others a kernel ends at once, without taking apart what it has imported."""


class _Server:
    """The process that kernels are forked from; asked by one line of JSON, it answers with a process id."""

    def __init__(self) -> None:
        command = [
            sys.executable,
            "-Xfrozen_modules=off",
            "-c",
            f"{_START}; from {__name__} import serve; serve()",
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self._lock = threading.Lock()

    def fork(self, command: list[str], cwd: str | None, env: dict[str, str]) -> int:
        """Start a kernel and return its process id."""
        assert self.process.stdin and self.process.stdout
        with self._lock:
            self.process.stdin.write(json.dumps([command, cwd or os.getcwd(), env]) + "\n")
            self.process.stdin.flush()
            return int(self.process.stdout.readline())


@cache
def _server() -> _Server:
    return _Server()


class _Kernel(psutil.Process):
    """A forked kernel, as ``subprocess.Popen`` shows a process."""

    stdin = stdout = stderr = None
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return None while it lives."""
        if not self.is_running():
            self.returncode = 0
        return self.returncode


class _Provisioner(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        pid = await asyncio.to_thread(
            _server().fork, cmd, kwargs.get("cwd"), dict(kwargs.get("env") or os.environ)
        )
        self.process = _Kernel(pid)
        self.pid = pid
        self.pgid = pid
        return self.connection_info


class WarmKernels(AsyncKernelManager):
    """Starts a kernel of this Python by a fork, and any other one as ever."""

    async def _async_pre_start_kernel(self, **kwargs: Any) -> Any:
        python = str(self.kernel_spec.argv[0]) if self.kernel_spec else ""
        if self.provisioner is None and python in (sys.executable, "python", "python3"):
            self.kernel_id = self.kernel_id or uuid.uuid4().hex
            self.provisioner = _Provisioner(
                kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
            )
        return await super()._async_pre_start_kernel(**kwargs)


def serve() -> None:
    """Fork a kernel for each line of the standard input, until it ends."""
    from importlib import import_module

    for name in _PRELOADED:
        import_module(name)
    gc.freeze()  # what all kernels share is not looked through again in each
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries the children
    answers = os.dup(1)
    children = []
    os.dup2(2, 1)  # a kernel that prints before its start must not answer for the server
    for line in sys.stdin:
        command, cwd, environment = json.loads(line)
        ready, bound = os.pipe()
        if pid := os.fork():
            os.close(bound)
            os.read(ready, 1)  # nothing, where the kernel has died
            os.close(ready)
            children.append(pid)
            os.write(answers, f"{pid}\n".encode())
            continue
        os.close(answers)
        _become(command, cwd, environment, bound)
    for pid in children:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _become(command: list[str], cwd: str, environment: dict[str, str], bound: int) -> None:
    """Become the kernel of a command ``python -m ipykernel_launcher -f FILE``; close ``bound`` when it can be asked."""
    import numpy
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.kernelapp import IPKernelApp

    class Kernel(IPythonKernel):
        def do_shutdown(self, restart: bool) -> Any:
            # a flush after this would wait for a thread that may have just ended
            IPKernelApp.instance().reset_io()
            return super().do_shutdown(restart)

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    numpy.random.seed()  # as after a start: the server's state would be that of every kernel
    sys.argv = [
        "ipykernel_launcher",
        *command[command.index("-f") :],
        "--HistoryManager.enabled=False",
    ]
    sys.path[0] = ""
    # errors only
    kernel = IPKernelApp.instance(parent_handle=os.getppid(), log_level=40, kernel_class=Kernel)
    kernel.initialize()
    os.close(bound)
    kernel.start()
    sys.exit(0)
