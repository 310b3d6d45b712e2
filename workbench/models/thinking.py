"""A model's thoughts, kept apart from what it says: in tags, before a closing tag alone, in the channels of harmony."""

from __future__ import annotations

import re

_NAMES = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection)"
_HEAD = r"(?:(?!<\|message\|>).){0,100}<\|message\|>"
_OPEN = re.compile(
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>\s*(?:analysis|commentary)\b{_HEAD}",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|end\|>(?=<\|start\|>)|<\|(?:end|return)\|>",
    re.IGNORECASE,
)
_MARKS = re.compile(
    rf"<\|start\|>\s*assistant|<\|channel\|>\s*final\b{_HEAD}|<\|(?:end|return|message)\|>"
    r"|<\|(?:begin|end)_of_solution\|>",
    re.IGNORECASE,
)


class Thinking:
    """Splits a reply, as it comes, into what the model says and what it thought.

    Attributes:
        said: what it says, so far.
        prefilled: a closing tag came that nothing had opened, so all before it was a thought.

    >>> thinking = Thinking()
    >>> thinking.heard("<thi") + thinking.heard("nk>Hm.</think>\\n\\nIn 1911.") + thinking.end(), thinking.thought
    ('In 1911.', 'Hm.')
    >>> split("Let me look.\\n</think>\\n\\nIn 1911.")
    ('In 1911.', 'Let me look.')
    """

    def __init__(self) -> None:
        self._inside = False
        self._assumed = False
        self._pending = ""
        self._thoughts = list[str]()
        self.said = ""
        self.prefilled = False

    @property
    def thought(self) -> str:
        """Return what it thought, so far."""
        return "".join(self._thoughts).strip()

    def assume(self, inside: bool) -> None:
        """Take the reply to begin in a thought, as earlier ones of this model did."""
        self._inside = self._assumed = inside

    def note(self, thought: str) -> None:
        """Add a thought that came by a field of its own."""
        if thought:
            self._thoughts.append(thought)

    def heard(self, text: str) -> str:
        """Return what may be said of the reply now that this part of it has come."""
        self._pending += text
        return self._read(last=False)

    def end(self) -> str:
        """Return the rest, now that nothing more comes."""
        if self._assumed and self._inside:  # no tag at all: it has not thought this time
            text = "".join(self._thoughts) + self._pending
            self._inside = False
            self._pending = text
            self._thoughts = []
        return self._read(last=True)

    def _read(self, last: bool) -> str:
        spoken = ""
        while True:
            mark = (_CLOSE if self._inside else _ANY).search(self._pending)
            if mark is None:
                keep = 0 if last else self._begun()
                part = self._pending[: len(self._pending) - keep]
                self._pending = self._pending[len(part) :]
                return spoken + self._put(part)
            spoken += self._put(self._pending[: mark.start()])
            self._pending = self._pending[mark.end() :]
            if self._inside:
                self._inside = self._assumed = False
                self._thoughts.append("\n")
            elif _OPEN.fullmatch(mark[0]):
                self._inside = True
            elif not _MARKS.fullmatch(mark[0]):  # it closes what nothing has opened
                self.prefilled = True
                self._thoughts.append(self.said)
                spoken = ""
                self.said = ""

    def _put(self, part: str) -> str:
        if self._inside:
            self._thoughts.append(part)
            return ""
        part = part if self.said else part.lstrip()
        self.said += part
        return part

    def _begun(self) -> int:
        """Return how many characters at the end may be the beginning of a mark."""
        # Characters of the longest mark: so much of an end may be the beginning of one.
        tail = self._pending[-160:]
        return next((len(tail) - n for n in range(len(tail)) if _MAY_BEGIN.match(tail[n:])), 0)


_MAY_BEGIN = re.compile(r"<\||<[^>]*\Z|\[[^\]]{0,6}\Z|◁[^▷]*\Z", re.DOTALL)
"""A mark whose end has not come yet; the channels of harmony have several parts."""
_ANY = re.compile(f"{_OPEN.pattern}|{_MARKS.pattern}|{_CLOSE.pattern}", re.IGNORECASE)


def split(text: str) -> tuple[str, str]:
    """Return what a whole reply says, and what the model thought."""
    thinking = Thinking()
    thinking.heard(text)
    thinking.end()
    return thinking.said, thinking.thought
