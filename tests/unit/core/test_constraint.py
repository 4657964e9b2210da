"""Specs are values: equal specs have equal text and hash, and the text gives the spec back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.constraint import (
    Alternative,
    Choice,
    ConstraintSpec,
    FreeText,
    Grammar,
    JsonValue,
    Marker,
    Node,
    Regex,
    Repeat,
    Sequence,
    Text,
)

text = st.text(max_size=8)
leaves = st.one_of(
    st.builds(Text, text),
    st.builds(Marker, text),
    st.builds(FreeText, st.lists(text, max_size=2).map(tuple)),
    st.builds(JsonValue, text, open_objects=st.booleans(), property_order=st.sampled_from(["any", "declared"])),
    st.builds(Regex, text, text),
    st.builds(Grammar, text, st.sampled_from(["lark", "gbnf", "ebnf"])),
    st.builds(Choice, st.lists(text, max_size=3).map(tuple)),
)


def _grow(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(children, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Sequence, several),
        st.builds(Alternative, several),
        st.builds(Repeat, children, st.integers(0, 3), st.none() | st.integers(3, 9), st.none() | children),
    )


nodes = st.recursive(leaves, _grow, max_leaves=8)


@given(nodes)
def test_a_spec_survives_its_text(root: Node) -> None:
    spec = ConstraintSpec(root=root)
    back = ConstraintSpec.from_json(spec.to_json())

    assert back == spec
    assert hash(back) == hash(spec)
    assert back.digest() == spec.digest()


@given(nodes, nodes)
def test_the_digest_tells_specs_apart(one: Node, other: Node) -> None:
    assert (ConstraintSpec(root=one).digest() == ConstraintSpec(root=other).digest()) == (one == other)


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown constraint node"):
        ConstraintSpec.from_json('{"provider":"llguidance","root":{"kind":"magic"}}')


def test_it_prints_as_a_tree() -> None:
    call = Sequence((Marker("<tool_call>"), JsonValue('{"type":"object"}')))
    root = Alternative((FreeText(("<tool_call>",)), Repeat(call, 1, None, Text("\n")), Choice(("yes", "no"))))

    assert ConstraintSpec(root=root).tree().splitlines() == [
        "Alternative",
        "  FreeText without '<tool_call>'",
        "  Repeat 1..",
        "    Sequence",
        "      Marker '<tool_call>'",
        '      JsonValue [json] {"type":"object"}',
        "    separated by",
        "      Text '\\n'",
        "  Choice yes | no",
    ]
