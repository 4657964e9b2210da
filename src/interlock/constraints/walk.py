"""Looking at all nodes of a spec."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.constraint import Alternative, Node, Repeat, Sequence


def walk(node: Node) -> Iterator[Node]:
    """``node`` and every node below it, parents first."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        match node:
            case Sequence(items=items) | Alternative(items=items):
                pending.extend(reversed(items))
            case Repeat(item=item, separator=separator):
                pending.extend(part for part in (separator, item) if part is not None)


def num_chars(node: Node) -> int:
    """Characters of all texts, schemas and grammars in a spec."""
    return sum(
        sum(map(len, value)) if isinstance(value, tuple) else len(value)
        for part in walk(node)
        if not isinstance(part, Sequence | Alternative | Repeat)
        for value in (getattr(part, name) for name in type(part).__dataclass_fields__)
        if isinstance(value, str | tuple)
    )
