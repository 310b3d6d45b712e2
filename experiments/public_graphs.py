"""Record public LangGraph graphs as they are, by one line each, and replay them with nothing executed.

    python experiments/public_graphs.py FOLDER [--only NAME]

FOLDER holds clones of the repositories in ``public_graphs.jsonl``; what is missing is listed with its ``git clone``.
No graph is changed. What would need a key is a stand-in: chat models call each tool once and then answer, forms are
filled in from their schemas, and packages that are not installed are empty modules. Every reply and result holds a
random number, so that a replay is the same only where it comes from the tape.

For each graph: effects of the run, pauses that were answered, whether the replay has the same state, what it executed
(nothing), and how many effects a fork executed after the last call of a model or tool had been replaced by hand.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import importlib.abc
import importlib.machinery
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_suffix(".jsonl")
PROJECT = Path(__file__).resolve().parent.parent
MOST_PAUSES = 8
_PACKAGES = """
tavily langchain_tavily langchain_anthropic langchain_ollama langchain_google_genai
langchain_groq langchain_community google.genai linkup exa_py duckduckgo_search
langchain_elasticsearch langchain_pinecone langchain_mongodb langchain_mcp_adapters arxiv bs4
markdownify azure langchain_aws langchain_cohere langchain_fireworks trustcall wikipedia
html2text ddgs mcp
"""
ABSENT = _PACKAGES.split()
"""Packages of the graphs that stand-ins replace."""
calls: Counter[str] = Counter()
"""How often a stand-in was really called."""


def filled(schema: dict, row: dict, definitions: dict | None = None, name: str = "value") -> Any:
    """Return a value that fits a JSON schema."""
    definitions = definitions or schema.get("$defs", {})
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    schema = (schema.get("allOf") or schema.get("anyOf") or [schema])[0]
    if "$ref" in schema:
        return filled(schema, row, definitions, name)
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][min(len(schema["enum"]) - 1, row.get("choice", 0))]
    if "const" in schema:
        return schema["const"]
    if "properties" in schema or kind == "object":
        fields = schema.get("properties", {})
        return {field: filled(inner, row, definitions, field) for field, inner in fields.items()}
    if kind == "array":
        return [filled(schema.get("items", {}), row, definitions, name)]
    if kind == "boolean":
        return row.get("yes", True)
    if kind in ("integer", "number"):
        return row.get("number", 1)
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00"
    return row["page"] if "url" in name else f"{name} text"


def chat_model(row: dict) -> type:
    """Return the class of a chat model that calls each tool once, and then answers."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.runnables import RunnableLambda
    from langchain_core.utils.function_calling import convert_to_openai_tool

    class StandIn(BaseChatModel):
        model: str = "stand-in"

        def __init__(self, *args: Any, **options: Any):
            super().__init__(model=str(options.get("model") or next(iter(args), "stand-in")))

        @property
        def _llm_type(self) -> str:
            return "stand-in"

        def bind_tools(self, tools: Any, *, tool_choice: Any = None, **_: Any) -> Any:
            described = [convert_to_openai_tool(tool) for tool in tools]
            return self.bind(tools=described, tool_choice=tool_choice)

        def with_structured_output(self, schema: Any, **_: Any) -> Any:
            is_model = hasattr(schema, "model_json_schema")
            form = schema.model_json_schema() if is_model else schema
            if not isinstance(form, dict):
                form = convert_to_openai_tool(schema)["function"]["parameters"]

            def parse(message: Any) -> Any:
                value = json.loads(message.content)
                return schema.model_validate(value) if is_model else value

            return self.bind(form=form) | RunnableLambda(parse, name="parse")

        def with_retry(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **bound: Any
        ) -> ChatResult:
            calls["model"] += 1
            tools = bound.get("tools") or []
            count = sum(bool(getattr(message, "tool_calls", None)) for message in messages)
            most = 2 if bound.get("tool_choice") in (None, "auto") else 4
            if "form" in bound:
                reply = AIMessage(json.dumps(filled(bound["form"], row)))
            elif tools and count < most:
                tool = tools[min(count, len(tools) - 1)]["function"]
                args = filled(tool.get("parameters", {}), row)
                reply = AIMessage(
                    "",
                    tool_calls=[{"name": tool["name"], "args": args, "id": str(random.random())}],
                )
            else:
                reply = AIMessage(
                    f"An answer to {str(messages[-1].content)[:40]!r}: {random.random()}"
                )
            return ChatResult(generations=[ChatGeneration(message=reply)])

    return StandIn


def page() -> dict[str, Any]:
    """Return a page as web searches find it."""
    calls["search"] += 1
    return {
        "title": "A page",
        "url": "http://x/1",
        "content": f"{random.random()}",
        "raw_content": "x",
        "score": 0.9,
    }


class Reply(str):
    """What an absent package returns: text, with the attributes that a grounded reply has."""

    text = property(str)
    candidates = (
        types.SimpleNamespace(
            grounding_metadata=types.SimpleNamespace(grounding_chunks=[], grounding_supports=[])
        ),
    )


class Thing:
    """Whatever an absent package makes: it takes and has anything."""

    def __init__(self, *_: Any, **__: Any):
        pass

    def __call__(self, *_: Any, **__: Any) -> Reply:
        calls["thing"] += 1
        return Reply(f"thing {random.random()}")

    def load(self) -> list[Any]:
        """Return a document, as loaders do."""
        from langchain_core.documents import Document

        return [Document(page()["content"], metadata={"source": "x"})]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing()


class Search(Thing):
    """A web search."""

    async def ainvoke(self, query: Any, **_: Any) -> Any:
        """Search."""
        return {"query": str(query), "results": [page()], "images": []}

    def invoke(self, query: Any, **_: Any) -> Any:
        """Search."""
        return {"query": str(query), "results": [page()], "images": []}

    search = ainvoke


class SyncSearch(Search):
    """A web search that blocks."""

    search = Search.invoke


class Extractor(Thing):
    """What ``trustcall`` makes: it fills in forms."""

    def __init__(self, model: Any, tools: Any = (), **_: Any):
        self.row = model.bound_row
        self.forms = [tool for tool in tools if hasattr(tool, "model_json_schema")]

    def invoke(self, *_: Any, **__: Any) -> Any:
        """Fill in each form."""
        calls["model"] += 1
        forms = [
            form.model_validate(filled(form.model_json_schema(), self.row)) for form in self.forms
        ]
        return {"responses": forms, "response_metadata": [{} for _ in forms], "messages": []}

    def with_listeners(self, *_: Any, **__: Any) -> Any:
        """Return itself."""
        return self


class AbsentPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty modules in place of packages that are not installed."""

    def __init__(self, model: type):
        self.model = model

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return a module where the package is one of the absent."""
        absent = any(f"{name}.".startswith(f"{package}.") for package in ABSENT)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return a module that has any name."""
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = self.find  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing."""

    def find(self, name: str) -> Any:
        """Return the stand-in for a name of a package."""
        if name.startswith("__"):
            raise AttributeError(name)
        known = {"TavilySearch": Search, "AsyncTavilyClient": Search, "TavilyClient": SyncSearch}
        known |= {"create_extractor": Extractor, "TavilySearchResults": search_tool}
        if name.startswith("Chat"):
            return self.model
        return known.get(name) or (type(name, (Thing,), {}) if name[0].isupper() else Thing())


def search_tool(*_: Any, **__: Any) -> Any:
    """Return a tool of LangChain that searches the web."""
    from langchain_core.tools import StructuredTool

    def search(query: str) -> list[dict[str, Any]]:
        return [page()]

    return StructuredTool.from_function(search, name="tavily", description="Search the web.")


def prepare(row: dict, folder: Path) -> None:
    """Put stand-ins in place of models, keys and packages."""
    import langchain.chat_models
    import langchain_openai
    from langchain_core.embeddings import DeterministicFakeEmbedding

    model = chat_model(row)
    model.bound_row = row  # type: ignore[attr-defined]
    for name in ("OPENAI", "TAVILY", "ANTHROPIC", "GEMINI", "GOOGLE"):
        os.environ[f"{name}_API_KEY"] = "none"
    sys.meta_path.insert(0, AbsentPackages(model))
    langchain.chat_models.init_chat_model = langchain.chat_models.base.init_chat_model = model  # type: ignore
    langchain_openai.ChatOpenAI = model  # type: ignore[misc]
    langchain_openai.OpenAIEmbeddings = lambda *_, **__: DeterministicFakeEmbedding(size=8)  # type: ignore
    sys.path[:0] = [str(folder / path) for path in row["path"]]
    os.chdir(folder / row["path"][0])


def measure(row: dict, folder: Path) -> dict[str, Any]:
    """Record a graph, run it, replay it and fork it."""
    from langchain_core.messages import AIMessage

    from workbench.parts.record.digests import plain
    from workbench.session import Workbench

    prepare(row, folder)
    with tempfile.TemporaryDirectory() as place, Workbench.open(place) as wb:
        agent = wb.record(row["graph"])
        run = agent.ask(row["input"], config={"configurable": row.get("config", {})})
        pauses = 0
        while run.status == "paused" and pauses < MOST_PAUSES:
            answer = row.get("answer", "ok")
            ids = [question.id for question in run.questions]
            run.answer(dict.fromkeys(ids, answer) if len(ids) > 1 else answer)
            pauses += 1
        before = calls.copy()
        replay = run.replay()
        made = calls - before
        effects = run.effects
        last = [effect for effect in effects if effect.kind in ("model", "tool")][-1:] or effects[
            -1:
        ]
        results = {"tool": "by hand", "model": [AIMessage("by hand")]}
        result = results.get(last[0].kind, last[0].value)
        try:
            fork: Any = run.fork(last[0].at, result=result)
            forked = f"{len(fork.executed)} of {len(fork.effects)}"
        except Exception as error:  # the graph's own, of a reply that is not the form it wants
            forked = f"raises {type(error).__name__}"
        same = plain(replay.state) == plain(run.state)
        return {
            "effects": len(effects),
            "pauses": pauses,
            "same": same and run.status == "done",
            "executed": len(replay.executed) + sum(made.values()),
            "fork": forked,
        }


def serve_page() -> str:
    """Serve an empty page on loopback, for tools that fetch; return its address."""
    handler = functools.partial(QuietHandler, directory=tempfile.mkdtemp())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def main() -> None:
    """Measure each graph in a process of its own, and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="graphs whose repository or name holds this")
    parser.add_argument("--row", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row:
        warnings.simplefilter("ignore")
        row = json.loads(args.row)
        print("\n" + json.dumps(measure(row, args.folder / row["repository"].rpartition("/")[2])))
        return
    rows = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]
    rows = [row for row in rows if args.only in f"{row['repository']} {row['graph']}"]
    address = serve_page()
    good = 0
    print(f"{'graph':<64}{'effects':>8}{'pauses':>8}{'same':>6}{'executed':>10}  fork executed")
    for row in rows:
        name = f"{row['repository'].rpartition('/')[2]} {row['graph']}"[:63]
        if not (args.folder / row["repository"].rpartition("/")[2]).exists():
            print(f"{name:<64}  git clone --depth 1 https://github.com/{row['repository']}")
            continue
        command = [
            sys.executable,
            __file__,
            str(args.folder.resolve()),
            "--row",
            json.dumps({**row, "page": address}),
        ]
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment, check=False
        )
        if ended.returncode:
            print(f"{name:<64}  {ended.stderr.strip().splitlines()[-1][:120]}")
            continue
        seen = json.loads(ended.stdout.strip().splitlines()[-1])
        good += seen["same"] and not seen["executed"]
        print(
            f"{name:<64}{seen['effects']:>8}{seen['pauses']:>8}{'yes' if seen['same'] else 'NO':>6}"
            f"{seen['executed']:>10}  {seen['fork']}",
            flush=True,
        )
    print(f"\n{good} of {len(rows)} graphs replay to the same state with nothing executed")


if __name__ == "__main__":
    main()
