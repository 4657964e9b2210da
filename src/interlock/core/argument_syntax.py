"""How a model family writes the arguments of a call: data that grammar, parser and prompt read alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

JsonType = Literal["string", "number", "boolean", "null", "object", "array"]
JSON_TYPES: tuple[JsonType, ...] = get_args(JsonType)


def type_words(strings: str, others: str) -> tuple[tuple[JsonType, str], ...]:
    """One word for text, and one for everything that is written as JSON."""
    return tuple((kind, strings if kind == "string" else others) for kind in JSON_TYPES)


@dataclass(frozen=True, slots=True)
class TaggedArguments:
    """Parameters as tags, one after the other. Strings are raw text, other values JSON.

    A parameter is ``key_open KEY key_close VALUE value_close``. With ``types`` a word tells the type of the value:
    ``key_open KEY type_open WORD key_close VALUE value_close``; without, the tool's schema does. A line break at
    the inner end of ``key_close`` or ``value_close`` is no part of the value. separator: between two parameters.
    escapes_keys: ``&`` and ``"`` in keys are written as XML entities. nested: words for values that hold tags in
    place of JSON, which models write and the parser reads; the items of such a list begin with ``item_open WORD
    key_close``.
    """

    key_open: str
    key_close: str
    value_close: str
    separator: str = ""
    type_open: str = ""
    types: tuple[tuple[JsonType, str], ...] = ()
    escapes_keys: bool = False
    nested: tuple[tuple[Literal["object", "array"], str], ...] = ()
    item_open: str = ""

    @property
    def closer(self) -> str:
        """What no raw text may contain."""
        return self.value_close.strip()


@dataclass(frozen=True, slots=True)
class BareKeyArguments:
    """Like JSON without spaces, with bare keys, and strings as raw text between two ``quote`` marks."""

    quote: str


@dataclass(frozen=True, slots=True)
class NestedTagArguments:
    """Everything is a tag, to any depth: ``mark<key>value mark</key>``. Objects hold tags, arrays hold tags of the
    name ``item``; strings are raw text, other scalars JSON."""

    mark: str
    item: str = "item"


@dataclass(frozen=True, slots=True)
class PythonArguments:
    """Keyword arguments of Python: ``a=1, b="x", c=[True, None]``. quote: what we write around strings."""

    quote: Literal['"', "'"] = '"'


ArgumentSyntax = Literal["json"] | TaggedArguments | BareKeyArguments | NestedTagArguments | PythonArguments
