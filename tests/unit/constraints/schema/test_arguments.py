"""Schemas hold in every argument syntax, over the text as that syntax spells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.constraints.lowering import lower
from interlock.constraints.providers.registry import create_provider
from interlock.core.argument_syntax import (
    ArgumentSyntax,
    BareKeyArguments,
    NestedTagArguments,
    PythonArguments,
    TaggedArguments,
)
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer(("<|im_end|>", '<|"|>', "]<m>[", "|S|"))
PROVIDER = create_provider("llguidance", TOKENIZER)

LINES = TaggedArguments(key_open="<p=", key_close=">\n", value_close="\n</p>\n")
TYPED = TaggedArguments(
    key_open='<|S|p name="',
    type_open='" string="',
    key_close='">',
    value_close="</|S|p>",
    types=(
        ("string", "true"),
        ("number", "false"),
        ("boolean", "false"),
        ("null", "false"),
        ("object", "false"),
        ("array", "false"),
    ),
)
BARE = BareKeyArguments('<|"|>')
NESTED = NestedTagArguments("]<m>[")
PLAIN = NestedTagArguments("]<n>[")  # no token
PYTHON = PythonArguments("'")


def accepts(syntax: ArgumentSyntax, schema: dict[str, Any], text: str, **policy: Any) -> bool:
    value = JsonValue(schema=json.dumps({"type": "object", **schema}), syntax=syntax, **policy)
    grammar = lower(ConstraintSpec(root=value), TOKENIZER.special_tokens).grammar
    matcher = PROVIDER.compile(grammar).matcher()
    ids = TOKENIZER.encode(text)
    if matcher.validate(ids) < len(ids):
        return False
    for token_id in ids:
        matcher.accept(token_id)
    return matcher.is_accepting


def one(**schema: Any) -> dict[str, Any]:
    return {"properties": {"a": schema}, "required": ["a"]}


CODE = one(type="string", pattern="^[a-z]+$", maxLength=3)
CASES: list[tuple[ArgumentSyntax, dict[str, Any], list[str], list[str]]] = [
    (LINES, CODE, ["<p=a>\nabc\n</p>\n"], ["<p=a>\nabcd\n</p>\n", "<p=a>\nA\n</p>\n", "", "<p=a>\nab</p>\n"]),
    (LINES, one(enum=["x", "", "a</p>"]), ["<p=a>\nx\n</p>\n", "<p=a>\n\n</p>\n"], ["<p=a>\na</p>\n</p>\n"]),
    (LINES, one(type="string"), ["<p=a>\na < b\n\n</p>\n"], ["<p=a>\na</p>b\n</p>\n"]),
    (LINES, one(type="integer", minimum=3), ["<p=a>\n3\n</p>\n"], ["<p=a>\n2\n</p>\n", "<p=a>\nx\n</p>\n"]),
    (
        LINES,
        one(anyOf=[{"type": "string", "maxLength": 4}, {"type": "null"}]),
        ["<p=a>\nnull\n</p>\n", "<p=a>\nnul\n</p>\n", "<p=a>\n5\n</p>\n"],
        ["<p=a>\n null\n</p>\n"],
    ),
    (
        LINES,
        one(type=["string", "integer"], minLength=2),
        ["<p=a>\n7\n</p>\n", "<p=a>\n7a\n</p>\n"],
        ["<p=a>\nx\n</p>\n"],  # too short
    ),
    (LINES, one(type=["string", "integer"], minimum=9), ["<p=a>\n9\n</p>\n"], ["<p=a>\n8\n</p>\n"]),
    (
        LINES,
        one(type="object", properties={"k": {"type": "boolean"}}, required=["k"]),
        ['<p=a>\n{"k": true}\n</p>\n'],
        ["<p=a>\n{}\n</p>\n", "<p=a>\nk\n</p>\n"],
    ),
    (TYPED, CODE, ['<|S|p name="a" string="true">ab</|S|p>'], ['<|S|p name="a" string="false">"ab"</|S|p>']),
    (
        TYPED,
        one(enum=[1, "1", None]),
        [f'<|S|p name="a" string="{word}</|S|p>' for word in ('true">1', 'false">1', 'false">null')],
        ['<|S|p name="a" string="true">null</|S|p>'],
    ),
    (BARE, CODE, ['{a:<|"|>abc<|"|>}'], ['{a:<|"|>abcd<|"|>}', "{a:abc}", "{}", '{"a":<|"|>abc<|"|>}']),
    (
        BARE,
        one(type="array", items={"type": "object", "properties": {"b": {"type": ["null", "number"]}}}),
        ["{a:[]}", "{a:[{b:null},{b:1.5},{}]}"],
        ['{a:[{b:<|"|><|"|>}]}', "{a:[{}, {}]}"],
    ),
    (PYTHON, CODE, ["a='abc'"], ['a="abc"', "a='abcd'", "", "'a'='abc'"]),
    (
        PYTHON,
        {"properties": {"a": {"const": "it's"}, "b": {"enum": [True, None]}, "c": {"const": {"k": [1]}}}},
        ["", "a='it\\'s'", "a='it\\'s', b=True, c={'k': [1]}", "b=None"],
        ["a='it's'", "b=true", "c={k: [1]}", "a='it\\'s',b=True"],
    ),
    (NESTED, CODE, ["]<m>[<a>abc]<m>[</a>"], ["]<m>[<a>abcd]<m>[</a>", "]<m>[<a>abc]<m>[</b>", ""]),
    (
        NESTED,
        one(type="array", items={"type": "object", "properties": {"k": {"type": "integer"}}}, minItems=1),
        ["]<m>[<a>]<m>[<item>]<m>[<k>5]<m>[</k>]<m>[</item>]<m>[</a>"],
        ["]<m>[<a>]<m>[</a>", "]<m>[<a>]<m>[<item>5]<m>[</item>]<m>[</a>"],
    ),
    (
        PLAIN,
        one(type="string", maxLength=5),
        ["]<n>[<a>abc]<n>[</a>", "]<n>[<a>]<n>[</a>", "]<n>[<a>]<]]<n>[</a>"],
        ["]<n>[<a>abcdef]<n>[</a>", "]<n>[<a>]<n>[]<n>[</a>"],
    ),
    (
        PLAIN,
        one(type=["integer", "null", "string"]),
        ["]<n>[<a>12]<n>[</a>", "]<n>[<a>null]<n>[</a>", "]<n>[<a>1x]<n>[</a>"],
        ["]<n>[<a>1.5]<n>[</a>"],
    ),
    (
        PLAIN,
        one(type=["object", "integer"], additionalProperties={"type": "array", "items": {"type": "number"}}),
        [
            "]<n>[<a>]<n>[<k>]<n>[<item>1.5]<n>[</item>]<n>[<item>2]<n>[</item>]<n>[</k>]<n>[</a>",
            "]<n>[<a>]<n>[</a>",
            "]<n>[<a>7]<n>[</a>",
        ],
        ["]<n>[<a>]<n>[</k>", "]<n>[<a>]<n>[</a></a>", "]<n>[<a>]<n>[</k>]<n>[</a>", "]<n>[<a>7]<n>[<k>"],
    ),
]


@pytest.mark.parametrize(("syntax", "schema", "good", "bad"), CASES, ids=range(len(CASES)))
def test_what_the_schema_says_holds(
    syntax: ArgumentSyntax, schema: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    assert [text for text in good if not accepts(syntax, schema, text)] == []
    assert [text for text in bad if accepts(syntax, schema, text)] == []


def test_any_order_and_each_key_once() -> None:
    schema = {"properties": {"a": {"type": "null"}, "b": {"type": "null"}}}
    a, b = (f"<p={key}>\nnull\n</p>\n" for key in "ab")
    for text in ("", a, b + a):
        assert accepts(LINES, schema, text, property_order="any")
    assert not accepts(LINES, schema, a + a, property_order="any")
    assert not accepts(LINES, schema, b + a)


def test_open_objects_take_generic_values_in_the_syntax() -> None:
    for syntax, text in (
        (LINES, "<p=x y>\nfree\n</p>\n"),
        (TYPED, '<|S|p name="x" string="false">[1, {}]</|S|p>'),
        (BARE, '{x:[{y:<|"|>z<|"|>}]}'),
        (PYTHON, "x=[{'y': None}]"),
        (NESTED, "]<m>[<x>free]<m>[</x>"),
    ):
        assert accepts(syntax, {}, text)


@pytest.mark.parametrize(
    ("syntax", "key"), [(LINES, "a>b"), (BARE, "a b"), (PYTHON, "a b"), (NESTED, "<a>"), (TYPED, 'a"')]
)
def test_keys_that_cannot_be_written_are_refused(syntax: ArgumentSyntax, key: str) -> None:
    with pytest.raises(InterlockError, match="cannot write the key") as caught:
        accepts(syntax, {"properties": {key: {}}, "required": [key]}, "")
    assert caught.value.code == "invalid_schema"


def test_strings_that_all_hold_the_closer_are_refused() -> None:
    with pytest.raises(InterlockError, match="free of '</p>'"):
        accepts(LINES, one(const="a</p>"), "")


def test_a_refusal_without_a_keyword_reads_as_one_sentence() -> None:
    with pytest.raises(InterlockError) as caught:
        accepts(NESTED, {"allOf": [False]}, "")
    assert "cannot be enforced: " in caught.value.message
    assert "::" not in caught.value.message
