"""Custom tools: the model writes a call with one argument, ``input``, and the client gets the string in it.

So whatever holds for calls holds for them, in the family's own format: the string's schema has the grammar as its
``pattern``. A regex is read as ECMAScript's, like every pattern of a schema. A Lark grammar is turned into one pattern where
its language is regular (``constraints.lark.regular``); one that nests goes on as it is, and is held where the family
writes arguments as JSON (``constraints.lark.quoted``).
"""

from __future__ import annotations

import json
import re

from interlock.api.openai.responses.wire import WireTool, WireToolFormat
from interlock.constraints.lark.regular import pattern as lark_pattern
from interlock.constraints.lark.syntax import LarkError, NotRegularError
from interlock.core.tools import Tool
from interlock.errors import InterlockError

_OPENING = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# The longest part of a string that can be decoded now: whole escapes, no half of a surrogate pair.
_WHOLE = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"
)


def custom_tool(wire: WireTool, name: str, path: str) -> Tool:
    """The function that the model is shown; strict, so that its argument is always as described."""
    schema: dict[str, object] = {"type": "string"}
    grammar = None
    format_ = wire.format
    if format_ is not None and format_.type == "grammar":
        keywords, grammar = _held_to(format_, f"{path}.format")
        schema |= keywords
    parameters = {
        "type": "object",
        "properties": {"input": schema},
        "required": ["input"],
        "additionalProperties": False,
    }
    return Tool(
        name=name,
        description=wire.description,
        parameters=json.dumps(parameters),
        strict=True,
        input_grammar=grammar,
    )


def call_arguments(text: str) -> str:
    """The arguments of a call with the input ``text``."""
    return json.dumps({"input": text}, ensure_ascii=False)


class InputReader:
    """The input in the arguments of a call, as they arrive."""

    def __init__(self) -> None:
        self._held = ""
        self._is_open = False

    def push(self, text: str) -> str:
        """What can be read of the input with the next piece. Raises ``invalid_model_output`` where it is none."""
        self._held += text
        if not self._is_open:
            found = _OPENING.match(self._held)
            if found is None:
                if len(self._held) > 100:
                    raise InterlockError("invalid_model_output", "the call of a custom tool has no input")
                return ""
            self._is_open = True
            self._held = self._held[found.end() :]
        whole = _WHOLE.match(self._held)
        assert whole is not None, "it matches the empty string"
        self._held = self._held[whole.end() :]
        decoded: str = json.loads(f'"{whole[0]}"', strict=False)
        return decoded


def _held_to(format_: WireToolFormat, path: str) -> tuple[dict[str, str], str | None]:
    """Keywords of the input's schema, and a grammar that they cannot say. A Lark grammar is shown to the model as its
    author wrote it."""
    for name, value in (("syntax", format_.syntax), ("definition", format_.definition)):
        if value is None:
            raise InterlockError("missing_field", f"{path}.{name} is missing", param=f"{path}.{name}")
    definition = format_.definition or ""
    if format_.syntax == "regex":
        return {"pattern": f"^(?:{definition})$"}, None
    if format_.syntax != "lark":
        param = f"{path}.syntax"
        raise InterlockError("invalid_value", f"{param} must be `lark` or `regex`", param=param)
    shown = {"description": f"A text that this Lark grammar derives:\n{definition}"}
    try:
        return {**shown, "pattern": f"^(?:{lark_pattern(definition)})$"}, None
    except NotRegularError:
        return shown, definition
    except LarkError as error:
        param = f"{path}.definition"
        raise InterlockError("invalid_grammar", f"{param}, {error}", param=param) from None
