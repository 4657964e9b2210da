"""Small questions about the shape of a spec, and small pieces of Lark."""

from __future__ import annotations

from interlock.core.constraint import Alternative, FreeText, Node, Repeat, Sequence, Text
from interlock.errors import InterlockError


def flat(node: Node) -> tuple[Node, ...]:
    """The items of ``node`` as a sequence, nested sequences opened, empty texts dropped."""
    if isinstance(node, Sequence):
        return tuple(inner for item in node.items for inner in flat(item))
    if isinstance(node, Text) and not node.text:
        return ()
    return (node,)


def ends_free(node: Node) -> bool:
    match node:
        case FreeText():
            return True
        case Sequence():
            items = flat(node)
            return bool(items) and ends_free(items[-1])
        case Alternative(items=items):
            return any(ends_free(item) for item in items)
        case Repeat(item=item):
            return ends_free(item)
        case _:
            return False


def unrolled(node: Repeat) -> list[tuple[Node, ...]]:
    """The ways ``node`` can begin: with its first item, or with nothing."""
    options: list[tuple[Node, ...]] = []
    if node.maximum != 0:
        most = None if node.maximum is None else node.maximum - 1
        separated = node.item if node.separator is None else Sequence((node.separator, node.item))
        options.append((*flat(node.item), Repeat(separated, max(node.minimum - 1, 0), most)))
    if node.minimum == 0:
        options.append(())
    return options


def times(low: int, high: int | None) -> str:
    if (low, high) == (1, 1):
        return ""
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    return "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"


def join(parts: list[str]) -> str:
    return " ".join(part for part in parts if part)


def without_anchors(pattern: str) -> str:
    """The pattern matches as a whole, so one anchor at either end says nothing new; every server takes them."""
    pattern = pattern.removeprefix("^")
    backslashes = len(pattern) - 1 - len(pattern[:-1].rstrip("\\")) if pattern.endswith("$") else 1
    return pattern if backslashes % 2 else pattern[:-1]


def ambiguous(what: str) -> InterlockError:
    return InterlockError(
        "invalid_grammar", f"free text must be followed by fixed text, a marker or the end, not by {what}"
    )
