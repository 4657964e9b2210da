"""How values are written. The algebra and the shape of the rules do not depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from interlock.constraints.schema.text.emit import (
    is_spellable_with_escapes,
    literal,
    quote,
    terminal,
    text_literal,
)
from interlock.constraints.schema.text.json_spelling import JsonSpelling
from interlock.constraints.schema.text.nodes import Lang, Words

_GAP = "[ \\t\\n]{0,20}"
_SMALL = 48  # languages whose text is worth keeping


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
    def null(self) -> str: ...

    @property
    def true(self) -> str: ...

    @property
    def false(self) -> str: ...

    def key(self, keys: Lang) -> str:
        """Keys, one spelling each, with what stands between a key and its value."""
        ...

    def string(self, lang: Lang) -> str: ...


@dataclass(frozen=True, slots=True)
class JsonSyntax:
    """JSON text. item_separator: a terminal expression. key_separator: a regex. plain_separator: the text it stands
    for, if it is only one."""

    item_separator: str
    key_separator: str
    plain_separator: str | None = None
    object_open: str = '"{"'
    object_close: str = '"}"'
    array_open: str = '"["'
    array_close: str = '"]"'
    null: str = '"null"'
    true: str = '"true"'
    false: str = '"false"'

    def key(self, keys: Lang) -> str:
        if self.plain_separator is not None and isinstance(keys, Words) and len(keys.words) == 1:
            (name,) = keys.words
            if name.isascii():
                return text_literal(quote(name) + self.plain_separator)
        return terminal(keys, JsonSpelling(escapes=is_spellable_with_escapes(keys), after=self.key_separator))

    def string(self, lang: Lang) -> str:
        return _small_string(lang) if lang.size < _SMALL else _string(lang)


def _string(lang: Lang) -> str:
    if isinstance(lang, Words) and len(lang.words) == 1:
        (word,) = lang.words
        if word.isascii():
            return text_literal(quote(word))
    return terminal(lang, JsonSpelling(escapes=is_spellable_with_escapes(lang)))


@lru_cache(maxsize=512)
def _small_string(lang: Lang) -> str:
    return _string(lang)


def json_syntax(item_separator: str, key_separator: str, *, flexible: bool) -> JsonSyntax:
    if not flexible:
        return JsonSyntax(text_literal(item_separator), literal(key_separator), key_separator)
    return JsonSyntax(
        f"/{_GAP},{_GAP}/",
        f"{_GAP}:{_GAP}",
        object_open=f"/\\{{{_GAP}/",
        object_close=f"/{_GAP}\\}}/",
        array_open=f"/\\[{_GAP}/",
        array_close=f"/{_GAP}\\]/",
    )
