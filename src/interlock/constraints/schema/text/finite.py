"""The words of a language that has few."""

from __future__ import annotations

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.derive import first_classes, is_empty, representatives
from interlock.constraints.schema.text.lang import NONE, derive
from interlock.constraints.schema.text.nodes import Lang, Words

_MAX_CHARS = 300
_MAX_STATES = 2_000


def words(lang: Lang, limit: int) -> list[str] | None:
    """All words in order, or ``None`` if there are more than ``limit``, or if that is not easily told."""
    if isinstance(lang, Words):
        return sorted(lang.words) if len(lang.words) <= limit else None
    found: list[str] = []
    pending, num_states = [("", lang)], 0
    while pending:
        text, state = pending.pop()
        num_states += 1
        following = _next_chars(state)
        if following is None or num_states > _MAX_STATES:
            return None
        if state.nullable:
            found.append(text)
        for char in following:
            derived = derive(state, char)
            if derived is not NONE and not is_empty(derived):
                pending.append((text + char, derived))
        if len(found) + len(pending) > limit + _MAX_CHARS:
            return None  # each of them leads to a word
    return sorted(found) if len(found) <= limit else None


def _next_chars(lang: Lang) -> list[str] | None:
    """The characters that a word may begin with, ``None`` if they are many."""
    told = chars.from_ranges([pair for ranges in first_classes(lang) for pair in ranges])
    outside = [char for char in representatives(lang) if not chars.contains(told, ord(char))]
    if any(not is_empty(derive(lang, char)) for char in outside):
        return None
    if sum(high - low + 1 for low, high in told) > _MAX_CHARS:
        return None
    return [chr(code) for low, high in told for code in range(low, high + 1)]
