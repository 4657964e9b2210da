"""Nested grammars inside a JSON string: what the engine takes is the spelling of what the grammar derives."""

from __future__ import annotations

import json

import llguidance
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.constraints.lark.quoted import quoted
from interlock.constraints.lark.regular import pattern
from interlock.constraints.lark.syntax import LarkError, NotRegularError
from interlock.constraints.lowering import lower
from interlock.core.constraint import ConstraintSpec, Grammar, Sequence, Text
from interlock.errors import InterlockError

LISP = r"""
start: item
item: "(" item* ")" | SYMBOL | TEXT
SYMBOL: /[a-zé]+/
TEXT: "\"" /[^"\\]*/ "\""
%import common.WS
%ignore WS
"""
BLOCK = 'start: "{" LINE? start? LINE? "}"\nLINE: /[ab ]*b/ | /[\\n\\t]+/'
SUM = 'start: sum\nsum: sum "+" sum | "(" sum ")" | NUMBER\n%import common.NUMBER'


def takes(source: str, text: str) -> bool:
    """text: of the whole turn, spelt."""
    spec = ConstraintSpec(
        root=Sequence((Text('{"input": "'), Grammar(source, "lark", quoted=True), Text('"}')))
    )
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), lower(spec, {}).grammar)
    assert not matcher.is_error(), matcher.get_error()
    data = list(text.encode())
    if matcher.validate_tokens(data) < len(data):
        return False
    matcher.consume_tokens(data)
    return bool(matcher.is_accepting())


@pytest.mark.parametrize(
    ("source", "text", "derived"),
    [
        (LISP, "(a (b \n c) ())", True),
        (LISP, "é", True),
        (LISP, '(say "hi\n\tthere" é)', True),
        (LISP, "(a (b)", False),
        (LISP, "(a b))", False),
        (LISP, '("a)', False),
        (BLOCK, "{\n{\n\n}}", True),
        (BLOCK, "{ab b{\n}}", True),
        (BLOCK, "{a{\n}}", False),
        (SUM, "1+(2.5+3)+4", True),
        (SUM, "((1))", True),
        (SUM, "1+", False),
        (SUM, "(1+2", False),
    ],
)
def test_the_spelling_of_what_is_derived_is_taken(source: str, text: str, derived: bool) -> None:
    assert takes(source, json.dumps({"input": text}, ensure_ascii=False)) is derived


@pytest.mark.parametrize(
    "text", ['{"input": "(a"b)"}', '{"input": "(a\n)"}', '{"input": "(a)", "x": 1}', '{"input": (a)}']
)
def test_what_is_no_json_is_not_taken(text: str) -> None:
    assert not takes(LISP, text)


items = st.recursive(
    st.sampled_from(["a", "é", '"x\\n"'.replace("\\n", "\n")]),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=12,
)


@given(items)
def test_any_nesting(text: str) -> None:
    assert takes(LISP, json.dumps({"input": text}, ensure_ascii=False))
    assert not takes(LISP, json.dumps({"input": f"({text}"}, ensure_ascii=False))


def test_it_is_for_grammars_that_no_pattern_can_say() -> None:
    for source in (LISP, SUM):
        with pytest.raises(NotRegularError):
            pattern(source)


@pytest.mark.parametrize(
    "source", ["start: <|im_end|>", "start: (", "start: @other", "start: /(?=a)/", "start: /[^\\s\\S]/"]
)
def test_what_is_wrong_is_refused_with_its_place(source: str) -> None:
    with pytest.raises(LarkError, match="line 1"):
        quoted(source)
    with pytest.raises(InterlockError) as caught:
        lower(ConstraintSpec(root=Grammar(source, "lark", "tools[0]", quoted=True)), {})
    assert (caught.value.code, caught.value.param) == ("invalid_grammar", "tools[0]")
