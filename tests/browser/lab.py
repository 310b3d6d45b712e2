"""JupyterLab in a real Chromium, driven by Playwright: what a person would see, click and type.

How to write a test, in a file ``tests/browser/test_<subject>.py`` (the fixtures are there by themselves)::

    def test_approve(notebook, workspace):  # `workspace` only where the films are needed
        nb = notebook(["from workbench import Workbench", 'wb = Workbench.open("workspace"); wb.bench(kb="film")'])
        nb.run_all()  # fails with the kernel's own words when a cell does
        nb.page.locator(".wb-root").get_by_role("button", name="Ask").click()  # `page` is Playwright's: locators wait
        nb.wait("document.querySelector('.wb-answer')")  # any JavaScript condition; never sleep
        assert nb.kernel("wb.runs.list()[0].status") == "done"  # a Python expression; or open the workspace in the test

The notebook lies in ``tmp_path`` and its kernel works there, so the workspace is ``"workspace"``. Also:
``run_cell(i)``, ``cells()``, ``save()``, ``restart_kernel()``, ``kernel_status()``, ``reopen()``,
``theme(dark=True)``, ``resize(675)`` (the width of an output), ``eval(js)``, ``screenshot(path)``. At the end
``clean()`` is called by itself: an error in the console, a request to another host or a dialog fails the test; a
failed test leaves a picture beside its notebook. All files share one Chromium and one JupyterLab; each notebook has a
kernel of its own, forked from a process that has everything loaded. While Chromium is open the thread counts as inside
an event loop: no ``asyncio.run`` and no async tests in these files.
"""

from __future__ import annotations

import ast
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import nbformat
import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, ViewportSize, expect, sync_playwright

from tests.forked import kernels

HERE = {"127.0.0.1", "localhost"}
NO_CHROMIUM = "no Chromium here: apt-get install chromium, or playwright install chromium"
CHROMIUM_FLAGS = (
    *("--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    # What is not here goes to a proxy that is not there either. Playwright's own routing would turn the cache off.
    *("--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=127.0.0.1;localhost"),
)
# Nothing that asks the network by itself, or a person.
LAB_FLAGS = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--LanguageServerManager.autodetect=False",
)
LAB_SETTINGS = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}
# It asks every kernel about itself, and writes an error when that one is restarted before it has answered.
DISABLED = {"disabledExtensions": {"@jupyterlab/debugger-extension": True}}
SECONDS = 60.0
WINDOW = ViewportSize(width=1460, height=1800)
"""Tall: JupyterLab does not draw cells that are out of view."""
KEEP_STATE = "@jupyter-widgets/jupyterlab-manager:saveWidgetState"
PANEL = "jupyterapp.shell.currentWidget"
IDLE = f"{PANEL}?.sessionContext?.session?.kernel?.status === 'idle'"


@dataclass
class Seen:
    """What a browser did that it must not do."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    restarted: bool = False
    """Whether a kernel was restarted: JupyterLab then says of each request that was under way that it is cancelled."""

    def watch(self, context: BrowserContext) -> None:
        """Write down what every page of this browser does, frames and workers too."""
        context.on("console", self._said)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("dialog", self._dialog)
        context.on("request", lambda request: self._requested(request.url))
        context.on("page", lambda page: page.on("websocket", lambda socket: self._requested(socket.url)))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":  # an untouched JupyterLab writes none: nothing has to be left out
            self.errors.append(f"{message.text} ({message.location['url']})")

    def _dialog(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":  # the browser's own, when a page with changes is left
            return dialog.accept()
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _requested(self, url: str) -> None:
        where = urlsplit(url)
        if where.scheme not in {"data", "blob", "about"} and where.hostname not in HERE:
            self.outside.append(url)

    def clean(self) -> None:
        """No error in the console, nothing asked of another host, no dialog."""
        errors = [error for error in self.errors if not (self.restarted and "Canceled future for" in error)]
        assert not errors, "errors in the browser's console:\n" + "\n".join(errors)
        assert not self.outside, "asked of other hosts:\n" + "\n".join(self.outside)
        assert not self.dialogs, "dialogs:\n" + "\n".join(self.dialogs)

    def forget(self) -> None:
        for seen in (self.errors, self.outside, self.dialogs):
            seen.clear()
        self.restarted = False


@dataclass(frozen=True)
class Browser:
    context: BrowserContext
    seen: Seen


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A Chromium with a fresh profile; skips, visibly, where there is none."""
    with sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome", playwright.chromium.executable_path)
        found = next(filter(None, map(shutil.which, names)), None)
        if not found:
            pytest.skip(NO_CHROMIUM)
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=found,
            args=CHROMIUM_FLAGS,
            chromium_sandbox=os.getuid() != 0,
            viewport=WINDOW,
            locale="en-US",
        )
        context.set_default_timeout(SECONDS * 1000)  # a crowded machine answers late
        expect.set_options(timeout=SECONDS * 1000)
        seen = Seen()
        seen.watch(context)
        try:
            yield Browser(context, seen)
        finally:
            context.close()


@dataclass(frozen=True)
class Lab:
    """A JupyterLab with nothing of the person's own settings, serving one folder."""

    root: Path
    url: str
    token: str

    def call(self, method: str, path: str) -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", f"token {self.token}")
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.loads(answer.read() or "null")

    def open(self, browser: Browser, file: Path, cells: Sequence[str] = ()) -> Notebook:
        """A notebook, its kernel ready; written first when cells are given. All share a page: it takes 5 s to load."""
        if cells:
            kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
            code = [nbformat.v4.new_code_cell(cell) for cell in cells]
            nbformat.write(nbformat.v4.new_notebook(metadata={"kernelspec": kernel}, cells=code), file)
        page = browser.context.pages[0]
        page.set_viewport_size(WINDOW)
        notebook = Notebook(self, page, browser.seen, file)
        notebook.show(loaded=page.url.startswith(self.url))
        return notebook

    def end_kernels(self, folder: Path) -> None:
        """End the kernel of every notebook in the folder."""
        for session in self.call("GET", "api/sessions"):
            if (self.root / session["path"]).is_relative_to(folder):
                self.call("DELETE", f"api/sessions/{session['id']}")


@dataclass(frozen=True)
class Notebook:
    """One notebook, open in the browser."""

    lab: Lab
    page: Page
    seen: Seen
    file: Path

    def show(self, loaded: bool = False) -> None:
        """Open it in the page, which is loaded first if it is not, and wait until the kernel is ready."""
        path = self.file.relative_to(self.lab.root).as_posix()
        if loaded:
            self.command("docmanager:open", path=path)
        else:
            self.page.goto(f"{self.lab.url}lab/tree/{quote(path)}?token={self.lab.token}&reset")
        self.page.wait_for_selector(".jp-Notebook")
        self.wait(f"{PANEL}?.context?.path === {path!r}")
        self.wait(IDLE)
        self.eval("jupyterapp.shell.collapseLeft(), jupyterapp.shell.collapseRight()")

    def eval(self, javascript: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is waited for, a minute at most."""
        late = f"new Promise((_, no) => setTimeout(no, {SECONDS * 1000}, new Error('not done after {SECONDS} s')))"
        return self.page.evaluate(f"async () => Promise.race([({javascript}), {late}])")

    def wait(self, condition: str, seconds: float = SECONDS) -> None:
        self.page.wait_for_function(f"() => ({condition})", timeout=seconds * 1000)

    def command(self, name: str, **arguments: Any) -> Any:
        return self.eval(f"jupyterapp.commands.execute({name!r}, {json.dumps(arguments)}).then(() => null)")

    def keep_widget_state(self) -> None:
        """Have the state of widgets saved with the notebook. The command turns it over, for every notebook after it."""
        told = f"jupyterapp.commands.isToggled({KEEP_STATE!r})"
        if not self.eval(told):
            self.command(KEEP_STATE)
            self.wait(told)  # the command returns before it is done

    def run_all(self) -> None:
        self.command("notebook:run-all-cells")
        self._fail_on_errors(self.cells())

    def run_cell(self, index: int) -> None:
        self.eval(f"{PANEL}.content.activeCellIndex = {index}")
        self.command("notebook:run-cell")
        self._fail_on_errors([self.cells()[index]])

    def _fail_on_errors(self, cells: list[dict]) -> None:
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        failed = [line for output in outputs if output["output_type"] == "error" for line in output["traceback"]]
        assert not failed, re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(failed))

    def cells(self) -> list[dict]:
        """The cells as the notebook's format has them: type, source, outputs, metadata."""
        return self.eval(f"{PANEL}.content.model.toJSON().cells")

    def kernel(self, expression: str) -> Any:
        """The value of a Python expression in the kernel, as plain data; waits for a cell that runs."""
        asked = {"code": "", "silent": True, "store_history": False, "user_expressions": {"value": expression}}
        kernel = f"{PANEL}.sessionContext.session.kernel"
        reply = self.eval(f"{kernel}.requestExecute({json.dumps(asked)}).done.then(reply => reply.content)")
        value = reply["user_expressions"]["value"]
        assert value["status"] == "ok", f"{value['ename']}: {value['evalue']}"
        return ast.literal_eval(value["data"]["text/plain"])

    def kernel_status(self) -> str:
        return self.eval(f"{PANEL}.sessionContext.session?.kernel?.status ?? 'none'")

    def restart_kernel(self) -> None:
        """End the kernel at once, whatever it does, and wait for the next one."""
        self.seen.restarted = True
        self.eval(f"{PANEL}.sessionContext.restartKernel().then(() => null)")
        self.wait(IDLE)

    def save(self) -> dict:
        """Write the notebook to its file and give what stands there."""
        self.command("docmanager:save")
        return json.loads(self.file.read_text(encoding="utf-8"))

    def reopen(self) -> None:
        """Save it and load the page anew; the kernel goes on."""
        self.save()
        self.show()

    def theme(self, *, dark: bool) -> None:
        """JupyterLab's own light or dark theme."""
        self.command("apputils:change-theme", theme="JupyterLab Dark" if dark else "JupyterLab Light")
        self.wait(f"document.body.dataset.jpThemeLight === '{str(not dark).lower()}'")
        # Another change while the splash of this one fades would make JupyterLab remove the splash twice: an error.
        self.wait("!document.querySelector('#jupyterlab-splash')")

    def default_window(self, width: int = 1280, height: int = 800) -> None:
        """The window of a laptop, with JupyterLab's file browser open, as it is when one comes."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.eval("jupyterapp.shell.expandLeft()")

    def resize(self, width: int, height: int = 1800) -> None:
        """Make the window such that an output is so many pixels wide."""
        now = self.page.viewport_size
        output = self.page.locator(".jp-OutputArea-output:visible").first.bounding_box()
        assert now and output, "resize() needs a cell with an output"
        self.page.set_viewport_size({"width": round(now["width"] + width - output["width"]), "height": height})

    def screenshot(self, path: Path | str) -> None:
        self.page.screenshot(path=path)

    def close(self, failed: bool) -> None:
        """Close everything in the page for the next test; what failed may have left anything there."""
        if failed:
            self.page.goto("about:blank")
        else:
            self.eval("[...jupyterapp.shell.widgets('main')].forEach(widget => widget.dispose())")

    def clean(self) -> None:
        """No error in the console, nothing asked of another host, no dialog."""
        self.seen.clean()


@contextmanager
def jupyterlab(root: Path, own: Path) -> Iterator[Lab]:
    """Start one over ``root``, with its configuration and its log under ``own``; wait until it answers; end it."""
    token = secrets.token_hex(16)
    names = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    for name in names.values():
        (own / name).mkdir(parents=True)
    for plugin, settings in LAB_SETTINGS.items():
        file = own / "settings" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
    (own / "config" / "labconfig").mkdir()
    (own / "config" / "labconfig" / "page_config.json").write_text(json.dumps(DISABLED))
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--ServerApp.port=0", "--allow-root"),
        *(f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={token}"),
        "--LabApp.expose_app_in_browser=True",
        *LAB_FLAGS,
    ]
    environment = os.environ | {variable: str(own / name) for variable, name in names.items()}
    environment["JUPYTER_PATH"] = str(own / "forked")
    log = own / "jupyterlab.log"
    with log.open("wb") as written:
        process = subprocess.Popen(command, env=environment, cwd=root, stdout=written, stderr=subprocess.STDOUT)
    try:
        kernels(own / "forked")  # while it starts
        yield Lab(root, address(process, own / "runtime", token, log), token)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def address(process: subprocess.Popen[bytes], runtime: Path, token: str, log: Path) -> str:
    """Where the server answers, as soon as it does."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            try:
                url = json.loads(file.read_text())["url"]
                urllib.request.urlopen(f"{url}api/status?token={token}", timeout=5).close()
                return url
            except (ValueError, urllib.error.URLError):
                pass  # half written, or not yet listening
        time.sleep(0.05)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
