"""How values are written. The algebra and the shape of the rules do not depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from interlock.constraints.schema.text.emit import is_spellable_with_escapes, literal, terminal
from interlock.constraints.schema.text.json_spelling import JsonSpelling
from interlock.constraints.schema.text.nodes import Lang

_GAP = "[ \\t\\n]{0,20}"


class ArgumentSyntax(Protocol):
    """Terminal expressions for everything that is not a number."""

    @property
    def object_open(self) -> str: ...

    @property
    def object_close(self) -> str: ...

    @property
    def array_open(self) -> str: ...

    @property
    def array_close(self) -> str: ...

    @property
    def item_separator(self) -> str: ...

    @property
    def key_separator(self) -> str: ...

    @property
    def null(self) -> str: ...

    @property
    def true(self) -> str: ...

    @property
    def false(self) -> str: ...

    def key(self, keys: Lang) -> str:
        """Keys, one spelling each."""
        ...

    def string(self, lang: Lang) -> str: ...


@dataclass(frozen=True, slots=True)
class JsonSyntax:
    """JSON text. ``flexible``: up to 20 blanks, tabs or line ends between tokens, inside objects and arrays."""

    item_separator: str
    key_separator: str
    object_open: str = '"{"'
    object_close: str = '"}"'
    array_open: str = '"["'
    array_close: str = '"]"'
    null: str = '"null"'
    true: str = '"true"'
    false: str = '"false"'

    def key(self, keys: Lang) -> str:
        return terminal(keys, JsonSpelling(escapes=False))

    def string(self, lang: Lang) -> str:
        return terminal(lang, JsonSpelling(escapes=is_spellable_with_escapes(lang)))


def json_syntax(item_separator: str, key_separator: str, *, flexible: bool) -> JsonSyntax:
    if not flexible:
        return JsonSyntax(f"/{literal(item_separator)}/", f"/{literal(key_separator)}/")
    return JsonSyntax(
        f"/{_GAP},{_GAP}/",
        f"/{_GAP}:{_GAP}/",
        object_open=f"/\\{{{_GAP}/",
        object_close=f"/{_GAP}\\}}/",
        array_open=f"/\\[{_GAP}/",
        array_close=f"/{_GAP}\\]/",
    )
