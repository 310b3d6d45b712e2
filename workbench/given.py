"""Models that are given as objects where a name is expected: kept in this process by a name, and never written down.

    Workbench.open("my-workspace", chat_model=ChatOllama(model="qwen3"))  # any LangChain chat model or embeddings

The name is made of the class and of the model that it names, so that a record shows what was used and holds no key.
"""

from __future__ import annotations

from typing import Any

from workbench.errors import SettingsError, shown

PREFIX = "langchain:"
MODELS = ("chat_model", "embedding_model")
_METHODS = {"chat_model": ("astream", "ainvoke"), "embedding_model": ("embed_documents", "embed_query")}
_kept: dict[str, Any] = {}


def named(setting: str, given: Any) -> Any:
    """The name by which an object is kept; a name stays what it is.

    Raises:
        SettingsError: it is no model of that kind.
    """
    if isinstance(given, str) or given is None:
        return given
    if isinstance(given, type) or not all(callable(getattr(given, method, None)) for method in _METHODS[setting]):
        kind = "chat model" if setting == "chat_model" else "embeddings"
        raise SettingsError(f"{setting} is {shown(given)}. Give a name, or an object that is LangChain {kind}.")
    about = next((v for n in ("model_name", "model") if isinstance(v := getattr(given, n, None), str) and v), "")
    name = own = PREFIX + ":".join(filter(None, (type(given).__name__, about)))
    number = 1
    while setting == "chat_model" and _kept.get(name, given) is not given:  # an index goes by the name alone
        number += 1
        name = f"{own}#{number}"
    _kept[name] = given
    return name


def known(setting: str, name: str) -> Any:
    """The object of that name.

    Raises:
        SettingsError: it was given in another process.
    """
    if name not in _kept:
        raise SettingsError(
            f"{setting} is {name!r}, an object that this process does not have. "
            f"Give it again: Workbench.open(..., {setting}=OBJECT)."
        )
    return _kept[name]
