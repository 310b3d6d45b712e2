"""Settings of this part."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, SecretStr


class ServeSettings(BaseModel, use_attribute_docstrings=True):
    """How the service of a workspace is watched and guarded."""

    spans: Literal["", "otlp"] = ""
    """'otlp' sends the spans of each run by OpenTelemetry"""
    metrics: str = Field("", pattern=r"^$|^(\S+:)?\d{1,5}$")
    """HOST:PORT, or a port of this machine: counters for Prometheus"""
    http_token: SecretStr = SecretStr("")
    """token that every client of `workbench serve` must send; empty: none"""
