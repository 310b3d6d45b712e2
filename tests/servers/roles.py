"""A chat model by rules: each role answers by a function of what it is asked, well or badly."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.servers import Reply
from workbench.records.prompts import Prompts

Says = Callable[[str], Any]
_FIRST = {
    prompt.system.strip().splitlines()[0]: prompt.role for prompt in Prompts().values() if prompt.role != "writer"
}


def role_of(request: dict[str, Any]) -> str:
    """Who is asked, by the first line of the instructions."""
    system = str(request["messages"][0]["content"]).strip().splitlines()[0]
    return _FIRST.get(system, "writer")


def asked(request: dict[str, Any]) -> str:
    """What a role is asked, without the instructions."""
    return "\n".join(str(m["content"]) for m in request["messages"][1:] if m["role"] == "user")


def responder(**roles: Says) -> Callable[[dict[str, Any]], Reply]:
    """Answers of a model of which each role says what its function makes of the prompt; others give nothing usable."""

    def respond(request: dict[str, Any]) -> Reply:
        role = role_of(request)
        if role not in roles:
            return Reply(["nothing"])
        whole = str(request["messages"][0]["content"]) + "\n" + asked(request)
        said = roles[role](whole if role == "writer" else asked(request))
        return said if isinstance(said, Reply) else Reply([said if isinstance(said, str) else json.dumps(said)])

    return respond


def needs(text: str) -> list[str]:
    """The numbered needs of a prompt."""
    block = re.split("(?:Needs:|需要：)\n", text, maxsplit=1)[-1].partition("\n\n")[0]
    return re.findall(r"^\d+\. (.+?)(?: \(so far.*)?$", block, re.M)


def passages(text: str) -> dict[int, str]:
    """The numbered passages of a prompt."""
    block = text.partition("<evidence>\n")[2]
    found = re.findall(r"^\[(\d+)\] (.*?)(?=^\[\d+\] |\Z)", block, re.M | re.S)
    return {int(n): body for n, body in found}
