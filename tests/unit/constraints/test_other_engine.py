"""xgrammar chosen by a request, for grammars and structural tags that it brings: from the body to the matcher."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import numpy as np
import pytest

from interlock.api.json_body import parse_text
from interlock.api.openai.output_format import read_output_format
from interlock.api.openai.wire import WireConstrained
from interlock.compiling.trial import Trial
from interlock.constraints import bitmask
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.providers.registry import other_providers
from interlock.core.constraint import LoweredConstraint
from interlock.core.output_format import OutputFormat
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import answer_only, constrain
from interlock.tokenization.byte_tokenizer import byte_tokenizer

INSTALLED = importlib.util.find_spec("xgrammar") is not None
TOKENIZER = byte_tokenizer()
EBNF = 'root ::= "a" [0-9]+ "b"'
TAG = {
    "format": {"type": "tag", "begin": "<n>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</n>"}
}
AS_TEXT = ("json", "structural_tag")  # as the reader of bodies keeps them
QWEN = next(family for family in FAMILIES if family.name == "qwen3")


def asked(**fields: Any) -> OutputFormat:
    texts = {
        name: parse_text(json.dumps(value), max_nesting=32) for name, value in fields.items() if name in AS_TEXT
    }
    wire = WireConstrained.model_validate({"structured_outputs": {**fields, **texts}})
    return read_output_format(wire, max_nesting=32)


def lowered(output_format: OutputFormat) -> LoweredConstraint:
    spec = answer_only(output_format)
    assert spec is not None
    return Trial({}).run(spec)


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(
        LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 20), others=other_providers(TOKENIZER), deadline_s=60
    )


@pytest.mark.parametrize("fields", [{"grammar": EBNF}, {"structural_tag": TAG}])
def test_the_text_goes_to_the_engine_as_it_came(fields) -> None:
    found = lowered(asked(**fields, backend="xgrammar"))
    assert found.provider == "xgrammar"
    assert found.grammar in (EBNF, json.dumps(TAG), json.dumps(TAG, separators=(",", ":")))
    ours = lowered(asked(**fields, backend="llguidance"))
    assert ours == lowered(asked(**fields))
    assert (ours.provider, ours.key != found.key) == ("llguidance", True)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"json": {"type": "object"}}, "structured_outputs.backend"),
        ({"regex": "a"}, "structured_outputs.backend"),
        ({"grammar": {"syntax": "lark", "definition": "start: A"}}, "structured_outputs.grammar.definition"),
    ],
)
def test_what_the_engine_is_not_for_is_refused(fields, param) -> None:
    with pytest.raises(InterlockError) as caught:
        lowered(asked(**fields, backend="xgrammar"))
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", param)


@pytest.mark.parametrize(("thinking", "with_tools"), [("open", False), ("optional", False), ("closed", True)])
def test_turns_with_more_than_the_answer_are_refused(thinking, with_tools) -> None:
    tool = Tool(name="f", parameters="{}")
    tools = ToolContext(effective_tools=(tool,), callable_tools=(tool,), tool_choice=ToolChoice(mode="auto"))
    with pytest.raises(InterlockError, match="nothing but the answer"):
        constrain(
            QWEN,
            tools=tools if with_tools else ToolContext(),
            output_format=asked(grammar=EBNF, backend="xgrammar"),
            thinking=thinking,
        )


def test_a_turn_that_is_the_answer_is_taken() -> None:
    output_format = asked(grammar=EBNF, backend="xgrammar")
    spec = constrain(QWEN, tools=ToolContext(), output_format=output_format, thinking="closed")
    assert spec == answer_only(output_format)


@pytest.mark.skipif(INSTALLED, reason="the extra is installed")
def test_without_the_extra_the_request_is_refused_with_how_to_get_it(compiler) -> None:
    error = compiler.prepare(lowered(asked(grammar=EBNF, backend="xgrammar"))).exception(timeout=60)
    assert isinstance(error, InterlockError)
    assert error.code == "missing_extra"
    assert "interlock-llm[xgrammar]" in (error.hint or "")


@pytest.mark.skipif(not INSTALLED, reason="the extra xgrammar is not installed")
@pytest.mark.parametrize(
    ("fields", "text", "wrong"),
    [({"grammar": EBNF}, "a12b", "ab"), ({"structural_tag": TAG}, "<n>12</n>", "<n></n>")],
)
def test_the_engine_holds_the_answer(fields, text, wrong, compiler) -> None:
    grammar = compiler.prepare(lowered(asked(**fields, backend="xgrammar"))).result(timeout=60)
    matcher = grammar.matcher()
    row = np.zeros(bitmask.num_words(TOKENIZER.vocabulary.size), np.int32)
    for token_id in TOKENIZER.encode(text):
        matcher.fill(row)
        assert bitmask.is_allowed(row, token_id)
        matcher.accept(token_id)
    assert matcher.is_accepting
    ids = TOKENIZER.encode(wrong)
    assert grammar.matcher().validate(ids) < len(ids)


@pytest.mark.skipif(not INSTALLED, reason="the extra xgrammar is not installed")
@pytest.mark.parametrize(
    "fields", [{"grammar": "root ::= (("}, {"structural_tag": {"structures": [], "triggers": []}}]
)
def test_what_the_engine_does_not_read_is_an_error_of_the_request(fields, compiler) -> None:
    error = compiler.prepare(lowered(asked(**fields, backend="xgrammar"))).exception(timeout=60)
    assert isinstance(error, InterlockError)
    assert error.code in ("invalid_grammar", "unsupported_parameter")
