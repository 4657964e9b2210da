"""Structural tags: the language is the one that xgrammar gives them, with exact schemas inside."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from interlock.constraints import gbnf
from interlock.constraints.check import guarded
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec
from interlock.core.output_format import StructuralTagFormat
from interlock.errors import InterlockError
from interlock.families.wire.constrain import answer_only
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
PROVIDER = LLGuidanceProvider(TOKENIZER)
STOP = TOKENIZER.vocabulary.stop_ids[0]


def const(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


def tag(name: str) -> dict[str, Any]:
    return {"type": "tag", "begin": f"<f={name}>", "content": const(name), "end": "</f>"}


def triggered(**options: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<f="], "tags": [tag("a"), tag("b")], **options}


def dispatch(**options: Any) -> dict[str, Any]:
    return {"type": "dispatch", "rules": [["[", const("a]")]], **options}


def separated(**options: Any) -> dict[str, Any]:
    return {"type": "tags_with_separator", "tags": [tag("a")], "separator": ",", **options}


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 7}}, "required": ["n"]}
JSON = {"type": "json_schema", "json_schema": SCHEMA}
A, B = "<f=a>a</f>", "<f=b>b</f>"
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "triggered": (triggered(), ("", A, f"x{A}", f"{A}x", A + B, f"x{A}y{B}z", "x<f", "xyz"), ("x<f=", "<f=a>b</f>")),
    "triggered once": (triggered(stop_after_first=True), ("", A, f"x{A}", "x<f"), (f"{A}x", A + A, "x<f=")),
    "triggered first": (triggered(at_least_one=True), (A, f"{A}x", A + B), ("", f"x{A}", "x")),
    "triggered only": (triggered(at_least_one=True, stop_after_first=True), (A, B), ("", f"{A}x", A + A)),
    "excluded": (triggered(excludes=["bad"]), ("good", f"ba{A}d"), ("bad", f"{A}bad")),
    "dispatch": (dispatch(), ("", "x", "[a]", "x[a]y", "x[a]y[a]"), ("x[", "[b]")),
    "dispatch once": (dispatch(loop=False), ("", "x", "x[a]"), ("x[a]y", "x[")),
    "separated": (separated(), ("", A, f"{A},{A}"), (A + A, f"{A},")),
    "separated once": (separated(stop_after_first=True, at_least_one=True), (A,), ("", f"{A},{A}")),
    "ends": (
        {"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, "end": ["</t>", "</u>"]},
        ("<t></t>", "<t>x</u>"),
        ("<t>x", "<t>x</t>y</t>", "<t>x</t>y</u>"),
    ),
    "schema": ({**tag("a"), "content": JSON}, ('<f=a>{"n": 14}</f>',), ('<f=a>{"n": 15}</f>', "<f=a>{}</f>")),
    "or": ({"type": "or", "elements": [const("a"), {"type": "regex", "pattern": "[0-9]{2}"}]}, ("a", "12"), ("1",)),
    "sequence": ({"type": "sequence", "elements": [const("a"), const("b")]}, ("ab",), ("a", "ba")),
    "optional": ({"type": "optional", "content": const("ab")}, ("", "ab"), ("abab",)),
    "plus": ({"type": "plus", "content": const("ab")}, ("ab", "abab"), ("",)),
    "star": ({"type": "star", "content": const("ab")}, ("", "abab"), ("a",)),
    "repeat": ({"type": "repeat", "min": 1, "max": 2, "content": const("a")}, ("a", "aa"), ("", "aaa")),
    "ebnf": ({"type": "grammar", "grammar": 'root ::= "x" | "y"'}, ("x", "y"), ("xy",)),
    "lark": ({"type": "grammar", "syntax": "lark", "grammar": 'start: "x" "y"'}, ("xy",), ("x",)),
}  # fmt: skip
EXACT = frozenset({"schema"})  # where the other engine is known to accept more


def spec(found: dict[str, Any]) -> ConstraintSpec:
    made = answer_only(StructuralTagFormat(tag=json.dumps(found), param="response_format"))
    assert made is not None
    return made


def ours(found: dict[str, Any]) -> Callable[[str], bool]:
    grammar = guarded(PROVIDER, lower(spec(found), {}, gbnf_to_lark=gbnf.to_lark))
    return lambda text: grammar.matcher().validate([*text.encode(), STOP]) == len(text.encode()) + 1


def theirs(found: dict[str, Any]) -> Callable[[str], bool]:
    xgrammar = pytest.importorskip("xgrammar", reason="the extra xgrammar is not installed")
    texts = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(texts, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1)
    compiled = compiler.compile_structural_tag(json.dumps({"type": "structural_tag", **found}))

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(token_id) for token_id in (*text.encode(), 256))

    return accepts


@pytest.mark.parametrize("engine", [ours, theirs])
@pytest.mark.parametrize("name", CASES)
def test_the_language_of_a_format(name: str, engine: Any) -> None:
    format_, right, wrong = CASES[name]
    if engine is theirs and name in EXACT:
        pytest.skip("multiples are not held there")
    accepts = engine({"format": format_})
    assert [text for text in right if not accepts(text)] == []
    assert [text for text in wrong if accepts(text)] == []


def test_the_older_form() -> None:
    structures = [{"begin": "<f=n>", "schema": {"type": "integer"}, "end": "</f>"}]
    accepts = ours({"structures": structures, "triggers": ["<f="]})
    assert accepts("so <f=n>3</f> it is")
    assert not accepts("<f=n>x</f>")


@pytest.mark.parametrize(
    ("found", "code", "param"),
    [
        ({"format": {"type": "any_tokens"}}, "unsupported_parameter", "response_format.format.type"),
        ({"format": {**JSON, "style": "qwen_xml"}}, "unsupported_parameter", "response_format.format.style"),
        ({"format": {"type": "any_text", "max_tokens": 5}}, "unsupported_parameter", "response_format.format.max_tokens"),
        ({"format": {"type": "json_schema"}}, "invalid_value", "response_format.format.json_schema"),
        ({"format": {"type": "sequence", "elements": [3]}}, "invalid_value", "response_format.format.elements[0]"),
        ({"format": {"type": "repeat", "min": 3, "max": 1, "content": const("a")}}, "invalid_value",
         "response_format.format.min"),
        ({"format": {**triggered(), "triggers": ["<g"]}}, "invalid_value", "response_format.format.tags[0].begin"),
        ({"structures": []}, "invalid_value", "response_format.structures"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_its_place(found: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(InterlockError) as caught:
        spec(found)
    assert (caught.value.code, caught.value.param) == (code, param)
