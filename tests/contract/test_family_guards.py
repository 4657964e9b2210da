"""Items that must differ, and keys that nobody declared, are watched in the calls of every family, however it writes arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Matcher
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.output_format import TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families.base import ModelFamily, Thinking
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.families.wire.spell import spell_calls

ENDS = ('"', '\\"', "'", ">", '<|"|>', "<escape>", "]<]minimax[>[</", "/item>")
TAGS = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
    "required": ["tags"],
}
COUNTS = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}},
}


def tools(parameters: object) -> tuple[Tool, ...]:
    return tuple(Tool(name=name, parameters=json.dumps(parameters)) for name in ("mark", "mark_all"))


def turn(family: ModelFamily, thinking: Thinking, *arguments: object) -> str:
    """Thinking that shows a repetition, then calls with these arguments."""
    answer, format_ = family.answer, family.reasoning
    before = ""
    if thinking == "optional" and format_ is not None:
        before = (
            f'{format_.open}{format_.after_open}{{"tags": ["a", "a"]}}{format_.before_close}{format_.close}'
        )
        before += f"{format_.resume}{format_.after_close}"
    before += answer.open + answer.close if answer and answer.leads_always else ""
    before += family.tool_calls.lead if family.tool_calls.always_leads else ""
    calls = [("mark_all" if number % 2 else "mark", those) for number, those in enumerate(arguments)]
    return before + spell_calls(family.tool_calls, calls) + (answer.turn_close if answer else "")


def num_legal(matcher: Matcher, tokenizer: Tokenizer, text: str) -> int | None:
    """``None`` where all of ``text`` is legal and may be a whole turn, else how many tokens are."""
    ids = tokenizer.encode(text)
    found = matcher.validate(ids)
    if found < len(ids):
        return found
    probe = matcher.clone()
    for token_id in ids:
        probe.accept(token_id)
    return None if probe.is_accepting else found


def matcher_of(family: ModelFamily, thinking: Thinking, parameters: object, tokenizer: Tokenizer) -> Matcher:
    declared = tools(parameters)
    context = ToolContext(
        effective_tools=declared,
        callable_tools=declared,
        tool_choice=ToolChoice(mode="auto"),
        parallel_tool_calls=True,
        constrained=True,
    )
    spec = constrain(family, tools=context, output_format=TextFormat(), thinking=thinking)
    assert spec is not None
    compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 26))
    return compiler.prepare(lower(spec, tokenizer.special_tokens)).result(30).matcher()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_repetitions_in_calls_are_illegal(
    family: ModelFamily, family_tokenizer: Callable[[ModelFamily], Tokenizer]
) -> None:
    tokenizer = family_tokenizer(family)
    thinking: Thinking = "optional" if family.reasoning else "none"
    matcher = matcher_of(family, thinking, TAGS, tokenizer)
    single = family.tool_calls.single
    tags = [["a", "b"]] if single else [["a", "b"], ["a"], ["b", "a"]]
    fine = [{"tags": those} for those in tags]
    assert num_legal(matcher, tokenizer, turn(family, thinking, *fine)) is None
    wrong = turn(family, thinking, *fine[:-1], {"tags": ["a", "b", "a"]})
    legal = num_legal(matcher, tokenizer, wrong)
    assert legal is not None
    rest = tokenizer.decode(tokenizer.encode(wrong)[legal:])
    assert rest.startswith(ENDS), rest


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_key_comes_twice_in_arguments(
    family: ModelFamily, family_tokenizer: Callable[[ModelFamily], Tokenizer]
) -> None:
    """A key is another one in the calls before, in other objects, and as far as only its beginning is the same."""
    tokenizer = family_tokenizer(family)
    thinking: Thinking = "optional" if family.reasoning else "none"
    matcher = matcher_of(family, thinking, COUNTS, tokenizer)
    fine = [{"qaz": {"qaz": 1, "qazwsx": 2}, "qa": {"qaz": 3}}, {"qaz": {"edc": 4}}]
    fine = fine[:1] if family.tool_calls.single else fine
    text = turn(family, thinking, *fine)
    assert num_legal(matcher, tokenizer, text) is None
    inner = text.index("qazwsx")
    found = re.compile("qa(?!z)").search(text, inner)
    assert found is not None
    for at, first, value in ((inner, "qazwsx", "2"), (found.start(), "qa", "3")):
        wrong = text[:at] + "qaz" + text[at + len(first) :]
        legal = num_legal(matcher, tokenizer, wrong)
        assert legal is not None
        written = tokenizer.decode(tokenizer.encode(wrong)[:legal])
        assert wrong.startswith(written)
        assert at <= len(written) <= wrong.index(value, at), (written[at - 9 :], wrong[at - 9 : at + 20])
