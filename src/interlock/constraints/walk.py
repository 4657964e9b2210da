"""Looking at all nodes of a spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from interlock.core.constraint import Alternative, Node, Repeat, Sequence

MAX_SPEC_CHARS = 2 * 1024 * 1024
_MAX_CHARS = 128


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


def distinct_texts(root: Node, of_node: Callable[[Node], Iterable[str]], most: int) -> tuple[str, ...]:
    """What ``of_node`` finds in the nodes below ``root``: in order, no duplicates, at most ``most``, none empty or long."""
    found: dict[str, None] = {}
    for node in walk(root):
        for text in of_node(node):
            if len(found) == most:
                return tuple(found)
            if 0 < len(text) <= _MAX_CHARS:
                found[text] = None
    return tuple(found)
