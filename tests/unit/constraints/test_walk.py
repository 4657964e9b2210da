from __future__ import annotations

from interlock.constraints.walk import num_chars, walk
from interlock.core.constraint import Alternative, Choice, JsonValue, Node, Repeat, Sequence, Text

TREE = Sequence((Text("ab"), Repeat(Alternative((Text("c"), Choice(("d", "ef")))), 0, None, Text("-"))))


def test_parents_come_before_children_in_order() -> None:
    texts = [node.text for node in walk(TREE) if isinstance(node, Text)]
    assert texts == ["ab", "c", "-"]
    assert next(walk(TREE)) is TREE


def test_a_deep_tree_is_no_problem() -> None:
    node: Node = Text("x")
    for _ in range(50_000):
        node = Repeat(node)
    assert sum(1 for _ in walk(node)) == 50_001
    assert num_chars(node) == 1
    while isinstance(node, Repeat):  # taken apart here, as freeing it at once would recurse
        node = node.item


def test_all_texts_count() -> None:
    assert num_chars(TREE) == 7
    assert num_chars(JsonValue("{}", item_separator="", key_separator="", origin="abc", tool="t")) >= 2 + 3 + 1
