"""Settings of this part."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr


class SourceSettings(BaseModel, use_attribute_docstrings=True):
    """Sources outside the corpus."""

    tmdb_key: SecretStr = SecretStr("")
    """API read access token of themoviedb.org; empty: none"""
    tmdb_base_url: str = "https://api.themoviedb.org/3"
    tmdb_timeout_s: float = Field(6, gt=0)
    """seconds for all requests of one step"""
