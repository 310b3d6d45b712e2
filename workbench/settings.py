"""One frozen object with every number that can be changed: by the environment, a ``.env`` file, or code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlencode

from pydantic import (
    AliasChoices,
    AliasGenerator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as SourceError

from workbench.errors import SettingsError, shown
from workbench.extensions import load, parts
from workbench.state import Data, Json
from workbench.text import own_table

PREFIX = "langchain:"
ROLES = (
    *("router", "follow_up", "planner", "reflector", "rewriter", "writer", "checker", "judge"),
    *("memory", "summarizer", "agent"),
)
"""What a chat model may do. Each has a deterministic default."""
RULES, BY_MODEL = "rules", "llm"
"""Who does the task of a role: its deterministic default, or a model."""
_MODELS = ("chat_model", "embedding_model")
_EMBEDS = ("embed_documents", "embed_query")
_EARLIER_NAMES = own_table(__file__, "earlier_names")
_objects: Json = {}


def model_name(setting: str, model: Any) -> Any:
    """Return the name under which a model object is registered; a name is returned unchanged.

    >>> model_name("chat_model", {"model": "openai:m", "effort": "low", "temperature": 0.5})
    'openai:m?effort=low&temperature=0.5'

    Raises:
        SettingsError: the object is not a model of that kind.
    """
    if isinstance(model, str) or model is None:
        return model
    if isinstance(model, Mapping) and isinstance(model.get("model"), str):
        return join_model(
            model["model"], {name: value for name, value in model.items() if name != "model"}
        )
    methods, kind = (
        (_EMBEDS, "embeddings")
        if setting == "embedding_model"
        else (("astream", "ainvoke"), "chat model")
    )
    if isinstance(model, type) or not all(
        callable(getattr(model, method, None)) for method in methods
    ):
        raise SettingsError(
            f"{setting} is {shown(model)}. Give a name, or an object that is LangChain {kind}."
        )
    names = (getattr(model, attribute, None) for attribute in ("model_name", "model"))
    about = next((text for text in names if isinstance(text, str) and text), "")
    name = own = PREFIX + ":".join(filter(None, (type(model).__name__, about)))
    number = 1
    # an index goes by the name alone
    while setting != "embedding_model" and _objects.get(name, model) is not model:
        number += 1
        name = f"{own}#{number}"
    _objects[name] = model
    return name


def join_model(name: str, options: Json) -> str:
    """Return a model's name with the options of its calls, as one text."""
    texts = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in options.items()
    }
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
            "Give it again where the workspace is opened."
        )
    return _objects[name]


def model_objects() -> Json:
    """Return the objects that were given as models in this process, by their names."""
    return dict(_objects)


def models_by_role(models: Any) -> dict[str, str]:
    """Return the model name of each role that has a model; "all" means every role.

    >>> models_by_role({"all": "rules", "writer": "openai:m"})["planner"]
    'rules'

    Raises:
        SettingsError: there is no such role, or it is not a chat model.
    """
    if not isinstance(models, Mapping) or not set(models) <= {"all", *ROLES}:
        raise SettingsError(
            f"models is {shown(models)}. Give a model for each role. Known: all, {', '.join(ROLES)}."
        )
    by_role = {**dict.fromkeys(ROLES, models["all"]), **models} if "all" in models else models
    return {
        role: model_name(f"models.{role}", model)
        for role, model in by_role.items()
        if role != "all"
    }


def merge_settings(*layers: Data) -> Json:
    """Return settings of which later ones win, with models merged by role."""
    merged: Json = {}
    for layer in layers:
        models = {**merged.get("models", {}), **layer.get("models", {})}
        merged |= {**layer, "models": models} if models else layer
    return merged


def flatten_settings(settings: Data) -> Json:
    """Return settings with the model of each role as one of them, as ``models.writer``."""
    models = {f"models.{role}": name for role, name in settings.get("models", {}).items()}
    return {**{name: value for name, value in settings.items() if name != "models"}, **models}


def _second_name(name: str) -> Any:
    """Return the names of a setting that the earlier system had too, its own first; None for any other."""
    second = _EARLIER_NAMES.get(name)
    return AliasChoices(name, f"WORKBENCH_{name.upper()}", second) if second else None


class Settings(BaseSettings):
    """The settings of the core. ``Settings.load(step_top_k=20)`` adds those of the parts, and reads the environment."""

    model_config = SettingsConfigDict(
        env_prefix="WORKBENCH_",
        env_nested_delimiter="__",
        env_file=".env",
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        use_attribute_docstrings=True,
        alias_generator=AliasGenerator(validation_alias=_second_name),
    )

    # models
    chat_model: str = ""
    """'openai:NAME?temperature=0.2&effort=low' is used for every role; empty: no model"""
    models: dict[str, str] = {}
    """a model per role, as `WORKBENCH_MODELS__WRITER`; 'rules' keeps the role's built-in rules"""
    chat_base_url: str = ""
    """base URL of an OpenAI-compatible server"""
    chat_api_key: SecretStr = SecretStr("")
    chat_timeout_s: float = Field(60, gt=0)
    """seconds to wait for a server, and between two parts of an answer"""
    chat_answer_s: float = Field(300, gt=0)
    """seconds for one whole answer"""
    chat_max_characters: int = Field(20_000, ge=1)
    """a longer answer is cut off"""
    chat_max_tokens: int = Field(0, ge=0)
    """tokens requested from the server; 0 leaves the limit to the server"""
    embedding_model: str = "auto"
    """'auto', 'hashing', 'use', or 'openai:NAME'"""
    embedding_base_url: str = ""
    embedding_api_key: SecretStr = SecretStr("")
    model_retries: int = Field(2, ge=0, le=10)
    """how often a busy or unreachable server is asked again"""
    model_backoff_s: float = Field(0.5, ge=0)
    """seconds before the first retry; each further retry waits twice as long"""
    prices: str = ""
    """a TOML file with the price of a million tokens of each model"""
    bounds: Literal["strict", "off"] = "strict"
    """'off': a model's judgement stands, and no mark, filter or total of the rules is added"""
    on_failure: Literal["rules", "raise"] = "rules"
    """what happens when a model gives nothing usable: the rules do it, or the run fails"""
    search_first: bool = False
    """the rules search first; a model plans only where their answer is not probable enough"""
    reflector_window: int = Field(5, ge=1, le=50)
    """results of each step that the reflector's model reads"""
    token_budget: int = Field(0, ge=0)
    """tokens that the models of one run may use; 0: no limit"""
    money_budget: float = Field(0, ge=0)
    """money that the models of one run may cost, by the prices; 0: no limit"""
    rerank_model: str = Field("auto", min_length=1)
    """'auto', 'none', 'maxsim', or a cross-encoder: a name or a folder"""

    # a source outside, for what the corpus lacks
    graphiti_endpoint: str = ""
    """Graphiti's REST service, like http://localhost:8000"""
    graphiti_timeout_s: float = Field(6, gt=0)
    """seconds for all requests of one step"""

    # showing
    lang: Literal["", "en", "zh"] = ""
    """the language of labels; empty: that of the question"""

    # routing and planning
    auto_route: bool = True
    planner: Literal["rules", "one_step"] = "rules"
    """the planner used without a model; 'one_step': always one hybrid search"""
    max_tasks: int = Field(6, ge=1, le=50)

    # a step's budget
    step_timeout_s: float = Field(15, gt=0)
    step_top_k: int = Field(50, ge=1)
    step_max_retries: int = Field(1, ge=0)

    # execution and reflection
    execution_mode: Literal["sequential", "parallel", "adaptive"] = "parallel"
    max_concurrency: int = Field(4, ge=1)
    max_iterations: int = Field(3, ge=1)
    time_budget_s: float = Field(30, gt=0)

    retry_delay_s: float = Field(0, ge=0)
    """seconds before a step is tried again"""

    # merging and keeping
    merge: Literal["by_score", "as_found"] = "by_score"
    """the order of the evidence; 'as_found': step by step"""
    merge_max_results: int = Field(50, ge=1)
    merge_max_characters: int = Field(10_000, ge=100)
    history_window: int = Field(6, ge=0)
    """how many of the last messages a prompt quotes"""
    postgres_dsn: SecretStr = SecretStr("")

    # the index
    exact_search_limit: int = Field(20_000, ge=1)
    """number of vectors up to which search is exact"""
    vector_store: Literal["chroma", "lancedb"] = "chroma"
    """what searches the vectors of large bases"""
    lancedb_path: str = ""
    """a folder for LanceDB, as ~/.lancedb; empty: one in each base"""
    chroma_url: str = ""
    """a Chroma server for the vectors of large bases; empty: files of the base"""
    chunk_characters: int = Field(1_200, ge=100)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a setting of a part."""

    @field_validator(*_MODELS, mode="before")
    @classmethod
    def _by_name(cls, model: Any, info: ValidationInfo) -> Any:
        return model_name(str(info.field_name), model)

    @field_validator("models", mode="before")
    @classmethod
    def _by_role(cls, models: Any) -> Any:
        return models_by_role(models)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """For a notebook that shows them: no user and no password in an address."""
        for name, value in super().__repr_args__():
            yield (
                name,
                re.sub(r"(?<=://)[^/\s]*@", "", value) if isinstance(value, str) else value,
            )

    def role_model(self, role: str) -> str:
        """Return the name of the role's model, "" for its deterministic default.

        A role without a model of its own has the chat model; planning that is to be one step has its own alone.
        """
        own = self.models.get(role, "")
        if role == "planner" and self.planner == "one_step":
            return "" if own == RULES else own
        return "" if own == RULES else own or self.chat_model

    def model_variable(self, role: str) -> str:
        """Return the environment variable that gives the role its model."""
        if self.models.get(role):
            return f"WORKBENCH_MODELS__{role.upper()}"
        return "WORKBENCH_CHAT_MODEL"

    def with_changes(self, changes: Data) -> Settings:
        """Return the settings with these changes; models change by role."""
        by_name = {
            name: model_name(name, value) for name, value in changes.items() if name in _MODELS
        }
        models = {"models": models_by_role(changes.get("models", {}))}
        return self.model_copy(
            update=merge_settings({"models": self.models}, {**changes, **by_name, **models})
        )

    def __reduce__(self) -> Any:
        """Return how another process makes the settings again: their class is composed there too."""
        return _settings_from, (dict(self),)

    @classmethod
    def load(cls, **overrides: Any) -> Settings:
        """Read the environment, let ``overrides`` win.

        Raises:
            SettingsError: names the variable, the value and what is allowed.
        """
        fields = all_settings().model_fields
        unknown = sorted(set(overrides) - set(fields))
        if unknown:
            raise SettingsError(
                f"Unknown setting {unknown[0]!r}. Known: {', '.join(sorted(fields))}."
            )
        # before they meet those of the environment: "all" then wins over each of these
        if "models" in overrides:
            overrides["models"] = models_by_role(overrides["models"])
        try:
            return all_settings()(**overrides)
        except ValidationError as error:
            raise SettingsError("\n".join(_explain(e) for e in error.errors())) from None
        except SourceError as error:
            raise SettingsError(
                f"WORKBENCH_MODELS is not a JSON object ({error.__cause__})."
            ) from None


@cache
def all_settings() -> type[Settings]:
    """Return the class with the settings of the core and of every installed part."""
    mixins = [
        load(f"{part.package}.{part.settings}") for part in parts().values() if part.settings
    ]
    return create_model("Settings", __base__=(Settings, *mixins))


def _settings_from(values: Json) -> Settings:
    return all_settings().model_construct(**values)


def _explain(error: Any) -> str:
    name = str(error["loc"][0])
    fields = all_settings().model_fields
    field = name if name in fields else name.lower().removeprefix("workbench_")
    variable = name if name.isupper() else f"WORKBENCH_{field.upper()}"
    secret = field in fields and fields[field].annotation is SecretStr
    value = "(a secret)" if secret else repr(error["input"])
    return f"{variable} is {value}. {error['msg']}."


@cache
def default_settings() -> Settings:
    """Return the settings of this process, read once."""
    return Settings.load()
