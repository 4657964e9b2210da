"""Trees of a ``ConstraintSpec`` without needless nodes."""

from __future__ import annotations

from interlock.core.constraint import Alternative, Node, Sequence, Text


def sequence(*items: Node | None) -> Node:
    """``items`` in order, nested sequences opened and neighbouring texts joined."""
    flat: list[Node] = []
    for item in items:
        for node in item.items if isinstance(item, Sequence) else (item,):
            if node is None or node == Text(""):
                continue
            if isinstance(node, Text) and flat and isinstance(flat[-1], Text):
                flat[-1] = Text(flat[-1].text + node.text)
            else:
                flat.append(node)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def alternative(items: list[Node]) -> Node:
    return items[0] if len(items) == 1 else Alternative(tuple(items))
