"""One frozen object with every number that can be changed: by the environment, a ``.env`` file, or code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

from pydantic import AliasChoices, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from workbench.errors import SettingsError, shown
from workbench.state import Json

PREFIX = "langchain:"
ROLES = (
    *("router", "follow_up", "planner", "reflector", "rewriter", "writer", "checker", "judge", "extractor"),
    *("memory", "summarizer", "agent"),
)
"""What a chat model may do. Each has a deterministic default."""
RULES = "rules"
"""The model of a role that keeps its deterministic default."""
CHAT = ("chat_model", *(f"{role}_model" for role in ROLES))
MODELS = (*CHAT, "embedding_model")
_EMBEDS = ("embed_documents", "embed_query")
_objects: Json = {}


def model_name(setting: str, model: Any) -> Any:
    """Return the name under which a model object is registered; a name is returned unchanged.

    >>> model_name("writer_model", {"model": "openai:m", "effort": "low", "temperature": 0.5})
    'openai:m?effort=low&temperature=0.5'

    Raises:
        SettingsError: the object is not a model of that kind.
    """
    if isinstance(model, str) or model is None:
        return model
    if isinstance(model, Mapping) and isinstance(model.get("model"), str):
        return join_model(model["model"], {name: value for name, value in model.items() if name != "model"})
    methods, kind = (_EMBEDS, "embeddings") if setting == "embedding_model" else (("astream", "ainvoke"), "chat model")
    if isinstance(model, type) or not all(callable(getattr(model, method, None)) for method in methods):
        raise SettingsError(f"{setting} is {shown(model)}. Give a name, or an object that is LangChain {kind}.")
    about = next((v for n in ("model_name", "model") if isinstance(v := getattr(model, n, None), str) and v), "")
    name = own = PREFIX + ":".join(filter(None, (type(model).__name__, about)))
    number = 1
    while setting != "embedding_model" and _objects.get(name, model) is not model:  # an index goes by the name alone
        number += 1
        name = f"{own}#{number}"
    _objects[name] = model
    return name


def join_model(name: str, options: Json) -> str:
    """Return a model's name with the options of its calls, as one text."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()}
    return f"{name}?{urlencode(texts)}" if texts else name


def split_model(text: str) -> tuple[str, Json]:
    """Return a model's name and the options of its calls.

    >>> split_model("openai:m?effort=low&temperature=0.5")
    ('openai:m', {'effort': 'low', 'temperature': 0.5})
    """
    name, _, query = text.partition("?")
    options: Json = {}
    for key, value in parse_qsl(query):
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return name, options


def model_object(setting: str, name: str) -> Any:
    """Return the object of that name.

    Raises:
        SettingsError: it was given in another process.
    """
    if name not in _objects:
        raise SettingsError(
            f"{setting} is {name!r}, an object that this process does not have. "
            f"Give it again: Workbench.open(..., {setting}=OBJECT)."
        )
    return _objects[name]


# --- One frozen object with every number that can be changed: by the environment, a ``.env`` file, or code ---


def _alias(name: str, *aliases: str) -> AliasChoices:
    """Return the field's own environment name first, then the names of the earlier system."""
    return AliasChoices(name, f"WORKBENCH_{name.upper()}", *aliases)


class Settings(BaseSettings):
    """Every setting, with its default. ``Settings.load(top_k=20)`` reads the environment and lets code win."""

    model_config = SettingsConfigDict(
        env_prefix="WORKBENCH_", env_file=".env", frozen=True, extra="ignore", populate_by_name=True
    )

    # models
    chat_model: str = Field(
        "", description="'openai:NAME?temperature=0.2&effort=low' is used for every role; empty: no model"
    )
    router_model: str = Field(
        "", description="chooses the knowledge bases; 'rules' uses the built-in rules, as for every role below"
    )
    follow_up_model: str = Field("", description="rewrites a follow-up question so that it can be read alone")
    planner_model: str = Field("", description="plans the searches")
    reflector_model: str = Field("", description="decides whether the evidence is enough, and what to search for next")
    rewriter_model: str = Field("", description="rewrites the question for another search")
    writer_model: str = Field("", description="writes the answer")
    checker_model: str = Field("", description="checks each sentence of an answer against what it cites")
    judge_model: str = Field("", description="grades answers in `workbench eval answers`")
    extractor_model: str = Field("", description="reads names, relations and communities while indexing")
    memory_model: str = Field("", description="decides what to remember from a message")
    summarizer_model: str = Field("", description="summarizes a conversation")
    agent_model: str = Field("", description="drives the tools (`wb.agent`)")
    chat_base_url: str = Field("", description="base URL of an OpenAI-compatible server")
    chat_api_key: SecretStr = Field(SecretStr(""), validation_alias=_alias("chat_api_key", "OPENAI_API_KEY"))
    chat_timeout_s: float = Field(
        60, gt=0, description="seconds to wait for a server, and between two parts of an answer"
    )
    chat_answer_s: float = Field(300, gt=0, description="seconds for one whole answer")
    chat_max_characters: int = Field(20_000, ge=1, description="a longer answer is cut off")
    chat_max_tokens: int = Field(
        0, ge=0, description="tokens requested from the server; 0 leaves the limit to the server"
    )
    embedding_model: str = Field("auto", description="'auto', 'hashing', 'use', or 'openai:NAME'")
    embedding_base_url: str = ""
    embedding_api_key: SecretStr = Field(SecretStr(""), validation_alias=_alias("embedding_api_key", "OPENAI_API_KEY"))
    model_retries: int = Field(2, ge=0, le=10, description="how often a busy or unreachable server is asked again")
    model_backoff_s: float = Field(
        0.5, ge=0, description="seconds before the first retry; each further retry waits twice as long"
    )
    prices: str = Field("", description="a TOML file with the price of a million tokens of each model")
    bounds: Literal["strict", "off"] = Field(
        "strict", description="'off': a model's judgement stands, and no mark, filter or total of the rules is added"
    )
    on_failure: Literal["rules", "raise"] = Field(
        "rules", description="what happens when a model gives nothing usable: the rules do it, or the run fails"
    )
    reflector_window: int = Field(5, ge=1, le=50, description="results of each step that the reflector's model reads")
    token_budget: int = Field(0, ge=0, description="tokens that the models of one run may use; 0: no limit")
    index_token_budget: int = Field(
        0, ge=0, description="tokens that the extractor may use in one `kb add`; 0: indexing uses no model"
    )
    money_budget: float = Field(
        0, ge=0, description="money that the models of one run may cost, by the prices; 0: no limit"
    )
    spans: Literal["", "otlp"] = Field("", description="'otlp' sends the spans of each run by OpenTelemetry")
    metrics: str = Field(
        "", pattern=r"^$|^(\S+:)?\d{1,5}$", description="HOST:PORT, or a port of this machine: counters for Prometheus"
    )
    rerank_model: str = Field(
        "auto", min_length=1, description="'auto', 'none', 'maxsim', or a cross-encoder: a name or a folder"
    )
    fusion_strategy: Literal["rrf", "weighted", "cascade", "zscore", "percentile"] = Field(
        "rrf", description="how the fusion graph combines the rankings of its sources"
    )
    quality_threshold: float = Field(0.7, ge=0, le=1, description="quality below which the fusion graph searches again")
    max_retries: int = Field(3, ge=0, le=10, description="how often the fusion graph searches again")
    names: Literal["auto", "rules"] = Field("auto", description="how names are found in texts while indexing")

    # a source outside, for what the corpus lacks
    tmdb_key: SecretStr = Field(SecretStr(""), description="API read access token of themoviedb.org; empty: none")
    tmdb_base_url: str = "https://api.themoviedb.org/3"
    tmdb_timeout_s: float = Field(6, gt=0, description="seconds for all requests of one step")

    graphiti_endpoint: str = Field("", description="Graphiti's REST service, like http://localhost:8000")
    graphiti_timeout_s: float = Field(6, gt=0, description="seconds for all requests of one step")

    # others
    http_token: SecretStr = Field(
        SecretStr(""), description="token that every client of `workbench serve` must send; empty: none"
    )

    # showing
    lang: Literal["", "en", "zh"] = Field("", description="the language of labels; empty: that of the question")

    # routing and planning
    auto_route: bool = Field(True, validation_alias=_alias("auto_route", "KB_AUTO_ROUTE"))
    planner: Literal["rules", "one_step", "llm"] = Field(
        "rules", description="the planner used without a model; 'one_step': always one hybrid search"
    )
    max_tasks: int = Field(6, ge=1, le=50, validation_alias=_alias("max_tasks", "MA_PLANNER_MAX_TASKS"))

    # a step's budget
    step_timeout_s: float = Field(15, gt=0)
    step_top_k: int = Field(50, ge=1)
    step_max_retries: int = Field(1, ge=0)

    # execution and reflection
    execution_mode: Literal["sequential", "parallel", "adaptive"] = Field(
        "parallel", validation_alias=_alias("execution_mode", "MA_WORKER_EXECUTION_MODE")
    )
    max_concurrency: int = Field(4, ge=1, validation_alias=_alias("max_concurrency", "MA_WORKER_MAX_CONCURRENCY"))
    max_iterations: int = Field(3, ge=1)
    time_budget_s: float = Field(30, gt=0)

    # reports
    report_type: str = Field(
        "long", validation_alias=_alias("report_type", "MA_DEFAULT_REPORT_TYPE"), description="'short', 'long', or own"
    )
    citation_style: Literal["default", "apa", "ieee", "gb7714", "bibtex"] = "default"
    allow_unclarified_plan: bool = Field(
        True, validation_alias=_alias("allow_unclarified_plan", "MA_ALLOW_UNCLARIFIED_PLAN")
    )
    stop_on_clarification: bool = Field(
        True, validation_alias=_alias("stop_on_clarification", "MA_STOP_ON_CLARIFICATION")
    )
    default_domain: str = Field("通用", validation_alias=_alias("default_domain", "MA_DEFAULT_DOMAIN"))
    auto_generate_report: bool = Field(True, validation_alias=_alias("auto_generate_report", "MA_AUTO_GENERATE_REPORT"))
    strict_plan_signal: bool = Field(True, validation_alias=_alias("strict_plan_signal", "MA_STRICT_PLAN_SIGNAL"))
    reflection_allow_retry: bool = Field(
        False, validation_alias=_alias("reflection_allow_retry", "MA_REFLECTION_ALLOW_RETRY")
    )
    reflection_max_retries: int = Field(
        1, ge=0, le=10, validation_alias=_alias("reflection_max_retries", "MA_REFLECTION_MAX_RETRIES")
    )
    retry_delay_s: float = Field(0, ge=0, description="seconds before a step is tried again")
    consistency_check: bool = Field(True, validation_alias=_alias("consistency_check", "MA_ENABLE_CONSISTENCY_CHECK"))
    mapreduce: bool = Field(True, validation_alias=_alias("mapreduce", "MA_ENABLE_MAPREDUCE"))
    mapreduce_threshold: int = Field(20, ge=1, validation_alias=_alias("mapreduce_threshold", "MA_MAPREDUCE_THRESHOLD"))
    reduce_strategy: Literal["collapse", "refine", "tree"] = "tree"
    max_tokens_per_reduce: int = Field(
        4_000, ge=200, validation_alias=_alias("max_tokens_per_reduce", "MA_MAX_TOKENS_PER_REDUCE")
    )
    parallel_map: bool = Field(True, validation_alias=_alias("parallel_map", "MA_ENABLE_PARALLEL_MAP"))
    section_max_evidence: int = Field(
        8, ge=1, validation_alias=_alias("section_max_evidence", "MA_SECTION_MAX_EVIDENCE")
    )
    section_max_context_characters: int = Field(
        800, ge=0, validation_alias=_alias("section_max_context_characters", "MA_SECTION_MAX_CONTEXT_CHARS")
    )

    # merging and memory
    merge: Literal["by_score", "as_found"] = Field(
        "by_score", description="the order of the evidence; 'as_found': step by step"
    )
    merge_max_results: int = Field(50, ge=1)
    merge_max_characters: int = Field(10_000, ge=100)
    history_window: int = Field(6, ge=0, description="how many of the last messages a prompt quotes")
    memory_core: bool = Field(True, description="remember and apply what users say about themselves")
    memory_summary: bool = Field(True, description="summarize conversations")
    memory_episodes: bool = Field(True, description="recall earlier exchanges")
    memory_scope: Literal["conversation", "user"] = Field("conversation", description="whose exchanges are recalled")
    memory_top_k: int = Field(3, ge=1, description="how many exchanges are recalled")
    memory_least: float = Field(0.3, ge=0, le=1, description="the lowest similarity of a recalled exchange")
    memory_days: int = Field(0, ge=0, description="recall only exchanges of the last days; 0: all")
    memory_token_budget: int = Field(
        2_000, ge=0, description="tokens of a prompt that the conversation and memory may use"
    )
    summary_from: int = Field(10, ge=2, description="messages after which a conversation is summarized")
    summary_every: int = Field(
        5, ge=1, description="messages that leave the history window before the summary is updated"
    )
    tape_mb: float = Field(32, ge=0, description="megabytes that the tape of one run may use")
    postgres_dsn: SecretStr = Field(SecretStr(""), validation_alias=_alias("postgres_dsn", "POSTGRES_DSN"))

    # the index
    exact_search_limit: int = Field(20_000, ge=1, description="number of vectors up to which search is exact")
    vector_store: Literal["chroma", "lancedb"] = Field("chroma", description="what searches the vectors of large bases")
    lancedb_path: str = Field("", description="a folder for LanceDB, as ~/.lancedb; empty: one in each base")
    chroma_url: str = Field("", description="a Chroma server for the vectors of large bases; empty: files of the base")
    chunk_characters: int = Field(1_200, ge=100)

    @field_validator(*MODELS, mode="before")
    @classmethod
    def _by_name(cls, model: Any, info: ValidationInfo) -> Any:
        return model_name(str(info.field_name), model)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """For a notebook that shows them: no user and no password in an address."""
        for name, value in super().__repr_args__():
            yield name, re.sub(r"(?<=://)[^/\s]*@", "", value) if isinstance(value, str) else value

    def role_model(self, role: str) -> str:
        """Return the name of the role's model, "" for its deterministic default.

        A role without a model of its own has the chat model; planning that is to be one step has its own alone.
        """
        own: str = getattr(self, f"{role}_model")
        if role == "planner" and self.planner == "one_step":
            return "" if own == RULES else own
        return "" if own == RULES else own or self.chat_model

    @classmethod
    def load(cls, **overrides: Any) -> Settings:
        """Read the environment, let ``overrides`` win.

        Raises:
            SettingsError: names the variable, the value and what is allowed.
        """
        unknown = sorted(set(overrides) - set(cls.model_fields))
        if unknown:
            raise SettingsError(f"Unknown setting {unknown[0]!r}. Known: {', '.join(sorted(cls.model_fields))}.")
        try:
            return cls(**overrides)
        except ValidationError as error:
            raise SettingsError("\n".join(_explain(e) for e in error.errors())) from None


def _explain(error: Any) -> str:
    name = str(error["loc"][0])
    field = name if name in Settings.model_fields else name.lower().removeprefix("workbench_")
    variable = name if name.isupper() else f"WORKBENCH_{field.upper()}"
    known = Settings.model_fields.get(field)
    value = "(a secret)" if known and known.annotation is SecretStr else repr(error["input"])
    return f"{variable} is {value}. {error['msg']}."


@cache
def default_settings() -> Settings:
    """Return the settings of this process, read once."""
    return Settings.load()
