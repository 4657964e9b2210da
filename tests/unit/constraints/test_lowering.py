"""Lowering, seen through the grammar engine: which texts each spec accepts."""

from __future__ import annotations

import json

import pytest

from interlock.constraints import gbnf
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
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
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer(("<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "[TOOL]"))
PROVIDER = LLGuidanceProvider(TOKENIZER)


def grammar_of(node: Node) -> str:
    return lower(ConstraintSpec(root=node), TOKENIZER.special_tokens, gbnf_to_lark=gbnf.to_lark).grammar


def verdict(node: Node, text: str) -> str:
    """``whole``, ``prefix`` (legal so far), or ``no`` for ``text``, token by token."""
    matcher = PROVIDER.compile(grammar_of(node)).matcher()
    ids = TOKENIZER.encode(text)
    if matcher.validate(ids) < len(ids):
        return "no"
    for token_id in ids:
        matcher.accept(token_id)
    return "whole" if matcher.is_accepting else "prefix"


INTEGER = JsonValue('{"type": "integer"}')


def call(name: str, opener: Node, closer: Node) -> Node:
    return Sequence(
        (opener, Text(f'\n{{"name": "{name}", "arguments": '), JsonValue(_ARGUMENTS), Text("}\n"), closer)
    )


_ARGUMENTS = '{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}'
QWEN = (Marker("<tool_call>"), Marker("</tool_call>"))
PLAIN = (Marker("<call>"), Marker("</call>"))


def calls(markers: tuple[Marker, Marker], minimum: int, maximum: int | None = None) -> Node:
    either = Alternative((call("add", *markers), call("add_all", *markers)))
    return Repeat(either, minimum, maximum, Text("\n"))


def written(markers: tuple[Marker, Marker], *names: str) -> str:
    opener, closer = (marker.text for marker in markers)
    return "\n".join(f'{opener}\n{{"name": "{name}", "arguments": {{"x": 1}}}}\n{closer}' for name in names)


def turn(markers: tuple[Marker, Marker], minimum: int) -> Node:
    return Sequence((FreeText((markers[0].text,)), calls(markers, minimum)))


THINKING = Sequence((FreeText(("<tool_call>",)), Marker("</think>"), Text("\n\n"), INTEGER))
TEXT_THINKING = Sequence((FreeText(("<call>",)), Marker("</thought>"), Text("\n\n"), INTEGER))

TABLE: list[tuple[str, Node, dict[str, str]]] = [
    ("text", Text('a "b"\n\\'), {'a "b"\n\\': "whole", "a": "prefix", "b": "no", "": "prefix"}),
    ("empty text", Text(""), {"": "whole", "a": "no"}),
    ("unicode", Text("é\U0001f600\x00"), {"é\U0001f600\x00": "whole", "e": "no"}),
    ("special marker", Marker("<think>"), {"<think>": "whole", "": "prefix", "<": "no"}),
    ("special marker without angle brackets", Marker("[TOOL]"), {"[TOOL]": "whole", "[": "no"}),
    ("marker as text", Marker("<call>"), {"<call>": "whole", "<ca": "prefix"}),
    ("free text", FreeText(), {"": "whole", "any\nthing <tool": "whole", "a<tool_call>": "no"}),
    (
        "free text without",
        FreeText(("<call>", "END")),
        {"": "whole", "<cal": "whole", "a <call>": "no", "EN D": "whole", "xEND": "no", "<call": "whole"},
    ),
    (
        "free text to a special marker",
        THINKING,
        {
            "hm</think>\n\n42": "whole",
            "</think>\n\n1": "whole",
            "</think>1": "no",
            "hm": "prefix",
            "<tool_call>": "no",
        },
    ),
    (
        "free text to a text marker",
        TEXT_THINKING,
        {
            "hm </tho </thought>\n\n42": "whole",
            "</thought>\n\n1": "whole",
            "</thought> ": "no",
            "hm": "prefix",
            "a <call>": "no",
        },
    ),
    (
        "required calls, special markers",
        turn(QWEN, 1),
        {
            "text only": "prefix",
            "hi\n" + written(QWEN, "add"): "whole",
            written(QWEN, "add_all"): "whole",
            written(QWEN, "add", "add_all", "add"): "whole",
            written(QWEN, "add") + "\n": "prefix",
            written(QWEN, "add") + "x": "no",
            written(QWEN, "other"): "no",
        },
    ),
    (
        "required calls, text markers",
        turn(PLAIN, 1),
        {
            "text only": "prefix",
            "hi <call\n" + written(PLAIN, "add"): "whole",
            written(PLAIN, "add_all"): "whole",
            written(PLAIN, "add", "add_all", "add"): "whole",
            written(PLAIN, "other"): "no",
            "hi <call>x": "no",
        },
    ),
    (
        "optional calls, special markers",
        turn(QWEN, 0),
        {"": "whole", "text": "whole", "text " + written(QWEN, "add"): "whole", "<tool_call>x": "no"},
    ),
    (
        "optional calls, text markers",
        turn(PLAIN, 0),
        {
            "": "whole",
            "text": "whole",
            "text " + written(PLAIN, "add", "add"): "whole",
            written(PLAIN, "add"): "whole",
            "<call>x": "no",
            "a<": "whole",
        },
    ),
    (
        "text or calls, text markers",
        Alternative((FreeText(("<call>",)), calls(PLAIN, 1))),
        {
            "": "whole",
            "text": "whole",
            "<ca": "whole",
            "<cat>": "whole",
            written(PLAIN, "add", "add"): "whole",
            "<call>x": "no",
            "a " + written(PLAIN, "add"): "no",
        },
    ),
    (
        "text or calls in a section whose closer starts like the separator",
        Alternative(
            (
                FreeText(("<calls>",)),
                Sequence((Marker("<calls>"), Text("\n"), calls(PLAIN, 1), Text("\n</calls>"))),
            )
        ),
        {
            "<calls>\n" + written(PLAIN, "add", "add") + "\n</calls>": "whole",
            "<calls>\n" + written(PLAIN, "add") + "\n</calls>": "whole",
            "<calls>\n</calls>": "no",
            "<x": "whole",
        },
    ),
    (
        "one call or an answer after thinking",
        Sequence((FreeText(), Marker("</think>"), Text("\n\n"), Alternative((call("add", *QWEN), INTEGER)))),
        {"</think>\n\n7": "whole", "a</think>\n\n" + written(QWEN, "add"): "whole", "</think>\n\nx": "no"},
    ),
    (
        "alternatives that end in free text, then text",
        Sequence((Alternative((Text("x"), Sequence((Text("a"), FreeText())))), Text("END"))),
        {"xEND": "whole", "a b END": "whole", "aEND": "whole", "ab": "prefix", "x": "prefix", "aENDx": "no"},
    ),
    (
        "free text, then one of several texts",
        Sequence((FreeText(), Choice(("yes", "no")), Text("!"))),
        {"well yes!": "whole", "no!": "whole", "well": "prefix", "no?": "no"},
    ),
    (
        "repeat with bounds",
        Repeat(Text("a"), 2, 3, Text(",")),
        {"a": "prefix", "a,a": "whole", "a,a,a": "whole", "a,a,a,": "no", "": "prefix"},
    ),
    ("repeat of nothing", Repeat(Text("a"), 0, 0), {"": "whole", "a": "no"}),
    ("repeat at most once", Repeat(Text("a"), 0, 1, Text(",")), {"": "whole", "a": "whole", "a,": "no"}),
    ("repeat without separator", Repeat(Text("ab"), 1), {"": "prefix", "abab": "whole", "aba": "prefix"}),
    (
        "choice",
        Choice(("ja", "jan", "", 'q"')),
        {"ja": "whole", "jan": "whole", "": "whole", 'q"': "whole", "x": "no"},
    ),
    ("regex", Regex("a/b[/]+"), {"a/b//": "whole", "a/b": "prefix", "x": "no"}),
    ("regex with anchors", Regex(r"^(a|b)\$+$"), {"a$$": "whole", "b": "prefix"}),
    ("regex with an escaped dollar at the end", Regex(r"a\$"), {"a$": "whole", "a": "prefix"}),
    ("regex with line breaks", Regex("a\nb"), {"a\nb": "whole"}),
    ("nullable regex", Regex("a*"), {"": "whole", "aa": "whole", "b": "no"}),
    (
        "lark keeps its own names",
        Sequence((Text("<"), Grammar('start: r0 T0\nr0: "a"\nT0: /[0-9]+/\n', "lark"), Text(">"))),
        {"<a12>": "whole", "<a>": "no"},
    ),
    (
        "two grammars",
        Alternative((Grammar('start: "a" X\nX: "b"', "lark"), Grammar('start: "c" X\nX: "d"', "lark"))),
        {"ab": "whole", "cd": "whole", "ad": "no"},
    ),
    (
        "gbnf",
        Grammar('root ::= item ("," item)*\nitem ::= [a-z]+ "\\u00e9"?', "gbnf"),
        {"ab,cé": "whole", "A": "no"},
    ),
    ("ebnf", Grammar('root ::= "x" | "y" root', "ebnf"), {"yyx": "whole", "yy": "prefix"}),
]


@pytest.mark.parametrize(
    ("node", "text", "expected"),
    [(node, text, expected) for _, node, texts in TABLE for text, expected in texts.items()],
    ids=[f"{name}: {text[:30]!r}" for name, _, texts in TABLE for text in texts],
)
def test_accepts_exactly_the_texts_of_the_spec(node: Node, text: str, expected: str) -> None:
    assert verdict(node, text) == expected


def test_text_that_spells_a_special_token_is_ordinary_tokens() -> None:
    matcher = PROVIDER.compile(grammar_of(Text("<think>"))).matcher()
    assert matcher.validate(TOKENIZER.encode("<think>")) == 0
    assert matcher.validate(TOKENIZER.encode_text("<think>")) == 7


def test_free_text_takes_the_look_alike_of_a_special_token() -> None:
    matcher = PROVIDER.compile(grammar_of(FreeText())).matcher()
    assert matcher.validate(TOKENIZER.encode_text("<tool_call>")) == 11


@pytest.mark.parametrize(
    ("node", "code", "words"),
    [
        (Sequence((FreeText(), Regex("a"))), "invalid_grammar", "must be followed by"),
        (Sequence((FreeText(), INTEGER)), "invalid_grammar", "must be followed by"),
        (Repeat(FreeText(), 1, None, Text(",")), "invalid_grammar", "must be followed by"),
        (Sequence((Repeat(FreeText(), 1), Text("x"))), "invalid_grammar", "must be followed by"),
        (Text("\ud800"), "invalid_value", "surrogate"),
        (Grammar('start: <|im_end|> "a"', "lark"), "invalid_grammar", "special tokens"),
        (Grammar("start: x\nx[max_tokens=3]: /a*/", "lark"), "invalid_grammar", "max_tokens"),
        (Grammar("start: @user_0", "lark"), "invalid_grammar", "other grammars"),
        (Grammar("item ::= [a-z]", "gbnf"), "invalid_grammar", "root"),
        (Grammar("root ::= nope", "ebnf"), "invalid_grammar", "nope"),
        (Grammar("root ::= (" + "(" * 20_000, "gbnf"), "invalid_grammar", "nested"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refuses_what_it_cannot_enforce(node: Node, code: str, words: str) -> None:
    with pytest.raises(InterlockError) as caught:
        grammar_of(node)
    assert caught.value.code == code
    assert words in caught.value.message


def test_special_tokens_in_strings_and_comments_of_a_grammar_are_no_tokens() -> None:
    source = '// <|im_end|> @x\nstart: "<|im_end|>" /[<]a>/ # max_tokens=\n'
    assert verdict(Grammar(source, "lark"), "") == "prefix"


def test_a_tree_nested_without_end_is_too_complex() -> None:
    node: Node = Text("a")
    for _ in range(3_000):
        node = Repeat(node, 1, 2)
    with pytest.raises(InterlockError) as caught:
        lower(ConstraintSpec(root=node), {})
    assert caught.value.code == "constraint_too_complex"


def test_equal_parts_are_lowered_once() -> None:
    grammar = grammar_of(Alternative(tuple(Sequence((Text(str(i)), INTEGER)) for i in range(5))))
    assert grammar.count("[1-9]") == 1


def test_the_key_is_of_the_grammar_text() -> None:
    first = lower(ConstraintSpec(root=JsonValue("true", origin="a")), {})
    second = lower(ConstraintSpec(root=JsonValue("true", origin="b")), {})
    assert first.key == second.key
    assert lower(ConstraintSpec(root=JsonValue("{}", flexible_whitespace=True)), {}).key != first.key


def test_notes_name_formats_that_are_annotations() -> None:
    schema = json.dumps({"properties": {"x": {"type": "string", "format": "phone"}}})
    assert lower(ConstraintSpec(root=JsonValue(schema)), {}).notes == (
        "/properties/x/format: format 'phone' is not checked",
    )


def test_a_foreign_provider_is_refused() -> None:
    with pytest.raises(InterlockError, match="no lowering"):
        lower(ConstraintSpec(root=Text("a"), provider="fake"), {})
