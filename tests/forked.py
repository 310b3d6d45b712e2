"""Processes of their own without their seven seconds of imports: each is forked from one that has everything loaded.

``Popen`` and ``run`` take ``[sys.executable, "-c", code, *words]`` as those of ``subprocess`` do. What is forked is a
process like any other: it has an environment, a folder, signals and an end of its own, and can be killed. A test that
looks at what is imported, at a hash seed or at memory needs a new interpreter: ``subprocess``.
"""

import atexit
import gc
import importlib
import json
import os
import pickle
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SIZE = 1 << 20
# What a notebook's kernel loads.
KERNEL = ("ipykernel.kernelapp", "ipykernel.zmqshell", "pandas", "ipywidgets", "workbench.widgets.bench")


class Popen(subprocess.Popen):
    """``subprocess.Popen`` of Python code, forked from the server of this process."""

    def __init__(self, args: Any, **how: Any):
        assert list(map(str, args[:2])) == [sys.executable, "-c"] and not how.keys() & {"preexec_fn", "shell"}
        super().__init__([os.fsdecode(arg) if isinstance(arg, bytes) else str(arg) for arg in args], **how)

    def _execute_child(self, args: list[str], *rest: Any) -> None:  # the one place where subprocess starts anything
        cwd, env = rest[4:6]
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = rest[9:15]
        handed = [p2cread if p2cread != -1 else 0, c2pwrite if c2pwrite != -1 else 1, errwrite if errwrite != -1 else 2]
        asked = {
            "argv": args[2:],
            "cwd": os.fspath(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
        }
        asked["env"] = {os.fspath(name): os.fspath(value) for name, value in asked["env"].items()}
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server.connect(server())
        socket.send_fds(self._server, [json.dumps(asked).encode()], handed)
        self.pid = int(self._server.recv(64))
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags and not select.select([self._server], [], [], 0)[0]:
            return 0, 0
        status = self._server.recv(64)
        self._server.close()
        return self.pid, int(status or 0)

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                pid, status = self._try_wait(os.WNOHANG) if self.returncode is None else (0, 0)
                if pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def call(function: Callable[..., Any], *args: Any, **how: Any) -> Popen:
    """Call the function in a process of its own."""
    code = "import pickle, sys; function, args = pickle.loads(bytes.fromhex(sys.argv[1])); function(*args)"
    return Popen([sys.executable, "-c", code, pickle.dumps((function, args)).hex()], **how)


def run(args: Any, *, timeout: float | None = None, check: bool = False, **how: Any) -> subprocess.CompletedProcess:
    """Run the code to its end, as ``subprocess.run`` does."""
    if how.pop("capture_output", False):
        how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(args, **how) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


@cache
def server() -> str:
    """Start the process that forks, one for all workers of a run of the tests; return its address."""
    from filelock import FileLock  # not there when this file stands for a kernel

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    owner = os.getppid() if run else os.getpid()  # with its end the process that forks ends too
    folder = Path(tempfile.gettempdir(), f"forked-{run or owner}")
    folder.mkdir(exist_ok=True)
    address = folder / "socket"
    with FileLock(folder / "lock"):
        if not address.exists():
            code = f"from tests.forked import serve; serve({str(address)!r}, {owner})"
            process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
            atexit.register(process.poll)
            assert process.stdout and process.stdout.readline() == b"ready\n"
    return str(address)


def serve(address: str, owner: int) -> None:
    """Load everything, then fork for every caller until the owner has ended."""
    for name in ("tests.warm", *KERNEL):
        importlib.import_module(name)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SIZE)
    listening.bind(address)
    listening.listen(64)
    print("ready", flush=True)
    gc.collect()
    gc.freeze()  # what is shared stays shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that wait for others are waited for by nobody
    ended = os.pidfd_open(owner)
    while True:
        if ended in select.select([listening, ended], [], [])[0]:
            shutil.rmtree(Path(address).parent, ignore_errors=True)
            sys.exit()
        caller, _ = listening.accept()
        if os.fork():
            caller.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        os.close(ended)
        data, handed, *_ = socket.recv_fds(caller, SIZE, 3)
        asked = json.loads(data)
        if pid := os.fork():  # this one tells how the other ends, and ends it when nobody is there to be told
            for fd in (*handed, 0, 1, 2):
                os.close(fd)
            caller.send(str(pid).encode())
            ended = os.pidfd_open(pid)
            if ended not in select.select([ended, caller], [], [])[0]:
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            with suppress(OSError):
                caller.send(str(status).encode())
            os._exit(0)
        caller.close()
        os._exit(carry_out(become(asked, handed)))


def kernels(folder: Path) -> Path:
    """Write what makes Jupyter fork its Python kernels; the folder belongs into ``JUPYTER_PATH``."""
    spec = folder / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    command = [sys.executable, "-I", "-S", __file__, server(), "{connection_file}"]
    spec.write_text(json.dumps({"argv": command, "display_name": "Python 3", "language": "python"}))
    return folder


def pytest_configure(config: Any) -> None:
    """Fork the kernels of notebooks: ``-p tests.forked``."""
    if not hasattr(config, "workerinput"):
        folder = kernels(Path(tempfile.mkdtemp(prefix="kernels-")))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["JUPYTER_PATH"] = str(folder)


def stand_for_kernel(address: str, connection_file: str, *more: str) -> None:
    """Have a kernel forked and be what Jupyter takes for it: pass interrupts on, end together."""
    code = "from ipykernel.kernelapp import launch_new_instance; launch_new_instance()"
    environment = {name: value for name, value in os.environ.items() if name != "JPY_PARENT_PID"}  # it has another one
    asked = {"argv": [code, "-f", connection_file, *more], "cwd": os.getcwd(), "env": environment}
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    caller.connect(address)
    socket.send_fds(caller, [json.dumps(asked).encode()], [0, 1, 2])
    pid = int(caller.recv(64))
    signal.signal(signal.SIGINT, lambda *_: os.kill(pid, signal.SIGINT))
    sys.exit(os.waitstatus_to_exitcode(int(caller.recv(64) or 0)))


def carry_out(code: str) -> int:
    """Run the code as an interpreter does, to the end of its threads, and return its status; take nothing apart."""
    main, status = sys.modules["__main__"].__dict__, 0
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]
    try:
        exec(compile(code, "<string>", "exec"), main)  # noqa: S102 - what `python -c` does
    except SystemExit as ended:
        if ended.code is not None and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            file.flush()
    return status & 255


def become(asked: dict[str, Any], handed: list[int]) -> str:
    """Take on the files, the environment and the folder of a process that somebody asked for; return its code."""
    for number, fd in enumerate(handed):
        os.dup2(fd, number)
        os.close(fd)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        number = ("stdin", "stdout", "stderr").index(name)
        file = os.fdopen(
            number, mode, encoding="utf-8", errors="surrogateescape" if number == 0 else "backslashreplace"
        )
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)
    sys.stderr.reconfigure(line_buffering=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run as `make test &`
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    code, *words = asked["argv"]
    sys.argv = ["-c", *words]
    more = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:0] = [folder for folder in [*more, str(ROOT)] if folder not in sys.path]
    return code


if __name__ == "__main__":
    stand_for_kernel(*sys.argv[1:])
