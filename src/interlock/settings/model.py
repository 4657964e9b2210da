"""Settings of one model. Every value is ``None`` where the server's own default holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NoReturn, get_type_hints

import msgspec

from interlock.config import PropertyOrder, SchemaMode, ToolConstraints, Whitespace
from interlock.errors import InterlockError

GrammarSyntax = Literal["lark", "gbnf", "ebnf"]
MAX_GRAMMAR_CHARS = 1 << 20
MAX_ALIASES = 32
MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """family: the model family, by name. reasoning_parser: the family whose thinking markers are read; the empty
    text for none, so that a constraint holds from the first token. thinking_budget: tokens of thinking in requests
    that ask for none. property_order: of answers and of tool arguments. max_tokens: of requests that say none.
    temperature to repetition_penalty: sampling where a request says nothing. grammar, grammar_syntax: what answers
    are held to in requests without a format. aliases: further names of the model in the API.
    """

    family: str | None = None
    reasoning_parser: str | None = None
    thinking_budget: int | None = None
    tool_constraints: ToolConstraints | None = None
    open_objects: bool | None = None
    whitespace: Whitespace | None = None
    property_order: PropertyOrder | None = None
    schema_mode: SchemaMode | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    grammar: str | None = None
    grammar_syntax: GrammarSyntax | None = None
    aliases: tuple[str, ...] | None = None

    def changed(self, changes: Mapping[str, Any]) -> ModelSettings:
        """With the values of ``changes``; ``None`` clears one. Raises ``invalid_value`` with the key's name."""
        return replace(self, **{key: _value(key, value) for key, value in changes.items()})

    def to_json(self) -> dict[str, Any]:
        """Every key, ``None`` where nothing is set."""
        return asdict(self)


_TYPES = get_type_hints(ModelSettings)


def _value(key: str, value: Any) -> Any:
    if key not in _TYPES:
        _refuse(key, f"there is no setting {key[:MAX_NAME_CHARS]!r}; there are {', '.join(_TYPES)}")
    try:
        # JSON has no tuple, and true is no number there
        found = msgspec.convert(value, _TYPES[key], strict=True)
    except msgspec.ValidationError as error:
        _refuse(key, f"{key}: {error}")
    problem = _problem(key, found)
    if problem is not None:
        _refuse(key, f"{key} {problem}")
    return found


def _problem(key: str, value: Any) -> str | None:
    """What is wrong with a value of the right type, without knowing the model."""
    match key, value:
        case _, None:
            return None
        case "thinking_budget", int() if value < 0:
            return "must not be negative"
        case "max_tokens", int() if value < 1:
            return "must be at least 1"
        case "grammar", str() if not value.strip() or len(value) > MAX_GRAMMAR_CHARS:
            return f"must have 1 to {MAX_GRAMMAR_CHARS} characters; null is for none"
        case "aliases", tuple() if len(value) > MAX_ALIASES or len(set(value)) < len(value):
            return f"must be at most {MAX_ALIASES} different names"
        case "aliases", tuple() if not all(name.strip() and len(name) <= MAX_NAME_CHARS for name in value):
            return f"must be names of 1 to {MAX_NAME_CHARS} characters"
    return None


def _refuse(key: str, message: str) -> NoReturn:
    raise InterlockError("invalid_value", message, param=key[:MAX_NAME_CHARS])
