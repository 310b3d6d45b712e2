"""The package knows nothing of films: what it knows of a corpus stands in that corpus' vocabulary."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import workbench

PACKAGE = Path(workbench.__file__).parent
TMDB = PACKAGE / "parts" / "sources" / "tmdb.py"
"""Allowed: it reads the answers of one database of films, for bases whose vocabulary asks for it, and no other."""
# Genres, types, roles, stars, scripts and sequels are of books, music and games too.
WORDS = re.compile(
    r"(?<![a-z])(?:films?|filming|filmed|filmmak\w+|movies?|cinema\w*|directors?|directorial|actors?"
    r"|directed(?![_ ](?:acyclic|graph))|actress(?:es)?"
    r"|casts?|starred|starring|screenplays?|screenwrit\w+|box office)(?![a-z])"
    "|电影|影片|片子|片名|片长|影院|影迷|影评|导演|执导|演员|主演|出演|参演|饰演|编剧|剧本|票房|上映|喜宴|李安|诺兰"
    "|wedding banquet|ang lee|nolan",
    re.IGNORECASE,
)


def said(path: Path) -> str:
    """What a file says: of Python not ``typing.cast``, and of SQL not ``CAST``."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        text = " ".join(token.string for token in tokens if token.string != "cast")
    return re.sub(r"\bCAST\b", "", text)


def test_no_file_of_the_package_holds_a_word_of_films():
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(files) > 150 and {".py", ".txt", ".toml", ".json", ".css"} <= {path.suffix for path in files}
    found = {
        str(path.relative_to(PACKAGE)): sorted({word.lower() for word in WORDS.findall(said(path))})
        for path in files
        if path != TMDB
    }
    assert {name: words for name, words in found.items() if words} == {}


def test_the_words_would_be_seen():
    assert WORDS.search("a director's cut") and WORDS.search("《夜航灯》的导演") and WORDS.search("directors_zh")
    assert not WORDS.search("the directory of a forecast, redirected, microfilmstrip, actorless")
