"""``ConstraintSpec``: what a whole model turn may look like, as a small frozen tree.

The spec is data; its behaviour (lowering, matching) lives in ``constraints/``. It covers the turn from
its first token: reasoning, markers, tool calls and answer are all in the tree, so the engine knows no
family. It is hashable, serialisable (``to_json``/``from_json``), and prints as a tree.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from interlock.config import PropertyOrder
from interlock.core.argument_syntax import (
    ArgumentSyntax,
    BareKeyArguments,
    NestedTagArguments,
    PythonArguments,
    TaggedArguments,
)
from interlock.core.output_format import GrammarDialect
from interlock.errors import Problem


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this text, in ordinary tokens."""

    text: str


@dataclass(frozen=True, slots=True)
class Marker:
    """A structural marker: whatever in it the vocabulary has as a special token is that token, the rest is
    text."""

    text: str


@dataclass(frozen=True, slots=True)
class FreeText:
    """Any text, possibly empty, that contains none of ``excludes`` and no special token.

    Followed by a ``Marker`` or ``Text`` in a ``Sequence`` it ends at the first occurrence of that text.
    begins_not: text it may not begin with, white space in front of it left out.
    """

    excludes: tuple[str, ...] = ()
    begins_not: str = ""


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A value valid against ``schema`` (JSON text, key order kept), written in an argument syntax.

    open_objects, property_order: see ``JsonPolicy``. whitespace ``flexible`` is bounded.
    relaxed: what cannot be held is left out and reported, instead of refused.
    item_separator and key_separator: spacing where ``whitespace`` is ``fixed``.
    origin: where the schema came from, for error reports (``tools[0].function.parameters``); it takes no
    part in equality of meaning, but it is part of the value. tool: the tool's name, if it is one's.
    """

    schema: str
    syntax: ArgumentSyntax = "json"
    open_objects: bool = False
    property_order: PropertyOrder = "declared"
    flexible_whitespace: bool = False
    relaxed: bool = False
    item_separator: str = ", "
    key_separator: str = ": "
    origin: str = ""
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class Regex:
    """Text matching ``pattern`` as a whole (Rust regex syntax)."""

    pattern: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Grammar:
    """Text derived from a grammar a user brought. quoted: it stands inside a JSON string, with JSON's escapes; for
    dialect ``lark``."""

    source: str
    dialect: GrammarDialect
    origin: str = ""
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Exactly one of ``options``."""

    options: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Sequence:
    """All ``items``, in order."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of ``items``."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``item`` at least ``minimum`` and at most ``maximum`` times (``None``: no limit), with ``separator``
    between two of them."""

    item: Node
    minimum: int = 0
    maximum: int | None = None
    separator: Node | None = None


Node = Text | Marker | FreeText | JsonValue | Regex | Grammar | Choice | Sequence | Alternative | Repeat

_KINDS: dict[str, type[Any]] = {
    "text": Text,
    "marker": Marker,
    "free_text": FreeText,
    "json_value": JsonValue,
    "regex": Regex,
    "grammar": Grammar,
    "choice": Choice,
    "sequence": Sequence,
    "alternative": Alternative,
    "repeat": Repeat,
    "tagged": TaggedArguments,
    "bare_keys": BareKeyArguments,
    "nested_tags": NestedTagArguments,
    "python": PythonArguments,
}
_NAMES = {cls: name for name, cls in _KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintSpec:
    """The constraint of one turn. ``provider`` names the engine that must enforce it."""

    root: Node
    provider: str = "llguidance"

    def to_json(self) -> str:
        """Canonical JSON text: equal specs give equal text."""
        return json.dumps(
            {"provider": self.provider, "root": _dump(self.root)}, ensure_ascii=True, separators=(",", ":")
        )

    @staticmethod
    def from_json(text: str) -> ConstraintSpec:
        """Inverse of ``to_json``. Raises ``ValueError`` for anything else."""
        data = json.loads(text)
        return ConstraintSpec(root=_load(data["root"]), provider=data["provider"])

    def digest(self) -> str:
        """SHA-256 of the canonical text, in hex: the cache key."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def tree(self) -> str:
        """The spec as an indented tree, for people."""
        return "\n".join(_lines(self.root, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredConstraint:
    """A spec in the provider's own grammar language: what the worker gets.

    grammar: for provider ``llguidance`` a Lark grammar, or JSON text of its own grammar list.
    key: cache key; equal keys mean equal grammars.
    notes: what the report says that a caller should see (annotations ignored, ...).
    literals: keys and string constants that the spec declares, for guesses at what comes next. required: keys that some
    object must have.
    closers: texts that may end free text, for closing an answer early.
    guards: JSON text of what must be checked beside the grammar while generating (``GuardedTurn``), part of ``key``.
    unenforced: keywords of relaxed schemas that the grammar leaves out.
    """

    provider: str
    grammar: str
    key: str
    notes: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()
    guards: str = ""
    unenforced: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowering:
    """The answer of the compile pool. is_cached: it was there already."""

    constraint: LoweredConstraint
    is_cached: bool = False


def _dump(node: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": _NAMES[type(node)]}
    for name in type(node).__dataclass_fields__:
        out[name] = _dump_value(getattr(node, name))
    return out


def _dump_value(value: Any) -> Any:
    if type(value) in _NAMES:
        return _dump(value)
    if isinstance(value, tuple):
        return [_dump_value(item) for item in value]
    return value


def _load(data: dict[str, Any]) -> Any:
    fields = {key: _load_value(value) for key, value in data.items() if key != "kind"}
    cls = _KINDS.get(data["kind"])
    if cls is None:
        raise ValueError(f"unknown constraint node {data['kind']!r}")
    return cls(**fields)


def _load_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _load(value)
    if isinstance(value, list):
        return tuple(_load_value(item) for item in value)
    return value


def _lines(node: Node, depth: int) -> list[str]:
    pad = "  " * depth
    name = type(node).__name__
    match node:
        case Sequence(items=items) | Alternative(items=items):
            return [f"{pad}{name}", *(line for item in items for line in _lines(item, depth + 1))]
        case Repeat(item=item, minimum=low, maximum=high, separator=separator):
            lines = [f"{pad}{name} {low}..{'' if high is None else high}", *_lines(item, depth + 1)]
            return (
                lines if separator is None else [*lines, f"{pad}  separated by", *_lines(separator, depth + 2)]
            )
        case Text(text=text) | Marker(text=text):
            return [f"{pad}{name} {text!r}"]
        case FreeText(excludes=excludes):
            return [f"{pad}{name}" + (f" without {', '.join(map(repr, excludes))}" if excludes else "")]
        case JsonValue(schema=schema, syntax=syntax):
            return [f"{pad}{name} [{_NAMES.get(type(syntax), syntax)}] {_short(schema)}"]
        case Regex(pattern=text) | Grammar(source=text):
            return [f"{pad}{name} {_short(text)}"]
        case Choice(options=options):
            return [f"{pad}{name} {_short(' | '.join(options))}"]


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 100 else flat[:97] + "..."
