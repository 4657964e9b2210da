"""What a search for an ending knows of a grammar beside its masks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndingHints:
    """What is known of a grammar. closers: texts that may end free text. literals: declared keys, in their order.
    required: names that some object must have. never: special tokens that an ending must not hold."""

    closers: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    never: frozenset[int] = frozenset()
