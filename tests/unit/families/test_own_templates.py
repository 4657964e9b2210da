"""A model's own template, where there is one, agrees with the family's on everything that both can say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.core.messages import Message, ToolCall
from interlock.core.request import ReasoningOptions
from interlock.core.tools import Tool
from interlock.families import deepseek_v3_2, deepseek_v4, deepseek_v4_1, harmony, kimi_k3
from interlock.families.base import ModelFamily
from interlock.families.registry import choose
from interlock.families.wire.render import PromptRenderer
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

Describe = Callable[..., ModelDescription]
Templates = Callable[[str], str]

NOON = datetime(2026, 2, 1, 12)  # noqa: DTZ001  the clock of a template
WORDS = st.sampled_from(["", "Hi", " a\n", 'x "<b>" & é', "<|end|></think>", "{{ tools }}", "</｜DSML｜", "A"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.floats(-9, 9, width=16) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("aBc"), inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "B", 'k"&']), JSON, max_size=3)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    kinds = ["string", "integer", "number", "boolean", "null", ["string", "null"], ["object"], None]
    kinds += ["object", "array", "oneOf"] * 2 if depth else []
    kind = draw(st.sampled_from(kinds))
    schema: dict[str, Any] = {} if kind in (None, "oneOf") else {"type": kind}
    if kind == "string" and draw(st.booleans()):
        schema["enum"] = draw(st.lists(WORDS, min_size=1, max_size=2))
    if kind == "array" and draw(st.booleans()):
        schema["items"] = draw(schemas(depth - 1))
    if kind == "oneOf":
        schema["oneOf"] = draw(st.lists(schemas(depth - 1), min_size=1, max_size=3))
    if kind == "object":
        schema["properties"] = draw(
            st.dictionaries(st.sampled_from(["a", "Bc", "d"]), schemas(depth - 1), max_size=3)
        )
        schema["required"] = draw(st.lists(st.sampled_from(["a", "d"]), max_size=2, unique=True))
    for key, values in (("description", WORDS), ("nullable", st.booleans()), ("default", WORDS)):
        if draw(st.integers(0, 2)) == 0:
            schema[key] = draw(values)
    return schema


@st.composite
def tools(draw: st.DrawFn) -> tuple[Tool, ...]:
    out = []
    for name in draw(st.lists(st.sampled_from(["run", "now", "web-browsing"]), max_size=3, unique=True)):
        properties = st.dictionaries(st.sampled_from(["a", "b", "C"]), schemas(), max_size=3)
        parameters = {
            "type": "object",
            "properties": draw(properties),
            "required": draw(st.sampled_from([[], ["a"]])),
        }
        description = draw(st.none() | WORDS)
        out.append(Tool(name=name, description=description, parameters=json.dumps(parameters)))
    return tuple(out)


@st.composite
def conversations(draw: st.DrawFn, late_system: bool = True) -> tuple[Message, ...]:
    out = [Message(role="system", content=draw(WORDS))] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 3))):
        if late_system and draw(st.integers(0, 4)) == 0:
            out.append(Message(role="system", content=draw(WORDS)))
        out += [Message(role="user", content=draw(WORDS)) for _ in range(draw(st.integers(1, 2)))]
        for step in range(draw(st.integers(0, 2))):
            calls = tuple(
                ToolCall(id=f"{turn}-{step}-{n}", name=name, arguments=json.dumps(draw(ARGUMENTS)))
                for n, name in enumerate(
                    draw(st.lists(st.sampled_from(["run", "now"]), min_size=1, max_size=2))
                )
            )
            said = {"content": draw(WORDS), "reasoning": draw(st.none() | WORDS)}
            out.append(Message(role="assistant", tool_calls=calls, **said))
            answers = [Message(role="tool", content=draw(WORDS), tool_call_id=call.id) for call in calls]
            out += draw(st.permutations(answers))
        if draw(st.booleans()):
            out.append(Message(role="assistant", content=draw(WORDS), reasoning=draw(st.none() | WORDS)))
    return (*out, Message(role="user", content=draw(WORDS))) if out[-1].role == "assistant" else tuple(out)


@dataclass(frozen=True)
class Model:
    """template: the file of a model of the family. efforts: those that both templates know."""

    family: ModelFamily
    template: str
    efforts: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    late_system: bool = True


MODELS = {
    "V3.2": Model(
        deepseek_v3_2.FAMILY, "deepseek-ai-DeepSeek-V3.2", tokens=("｜DSML｜", "<think>", "</think>")
    ),
    "V4": Model(deepseek_v4.FAMILY, "deepseek-ai-DeepSeek-V4", ("max",), ("｜DSML｜", "<think>", "</think>")),
    "V4 Flash": Model(deepseek_v4.FAMILY, "deepseek-ai-DeepSeek-V4-Flash-0731"),
    "K3": Model(kimi_k3.FAMILY, "Kimi-K3", ("low", "high", "max"), ("<|open|>", "<|sep|>", "<|close|>")),
    # Its own template drops a system message that is not the first.
    "gpt-oss": Model(harmony.FAMILY, "openai-gpt-oss-120b", ("low", "high"), ("<|end|>",), late_system=False),
}


@pytest.fixture(scope="module")
def renderers(templates: Templates) -> Callable[[str], list[PromptRenderer]]:
    """By the model's own template, and by the family's."""

    @cache
    def make(name: str) -> list[PromptRenderer]:
        model = MODELS[name]
        description = ModelDescription(
            tokenizer=byte_tokenizer(("<|im_end|>", *model.tokens)),
            architecture="",
            name="",
            chat_template=templates(model.template),
            context_tokens=0,
            bos_token="<bos>",
            eos_token="<|im_end|>",
        )
        return [
            PromptRenderer(model.family, each, now=lambda: NOON)
            for each in (description, replace(description, chat_template=None))
        ]

    return make


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_both_templates_give_the_same_prompt(
    name: str, data: st.DataObject, renderers: Callable[[str], list[PromptRenderer]]
) -> None:
    model = MODELS[name]
    reasoning = ReasoningOptions(
        enabled=data.draw(st.sampled_from([None] if name == "gpt-oss" else [None, True, False])),
        effort=data.draw(st.sampled_from([None, *model.efforts])),
    )
    conversation = data.draw(conversations(model.late_system))
    declared = data.draw(tools())
    theirs, ours = (renderer.render(conversation, declared, reasoning) for renderer in renderers(name))
    assert ours == theirs


TURN = Message(role="user", content="Hi")
CALLS = (
    ToolCall(id="a", name="run", arguments='{"a": "x <b>", "n": 1.0, "o": {"k": null}}'),
    ToolCall(id="b", name="now", arguments="{}"),
)
RAN = (
    TURN,
    Message(role="assistant", content="So:", reasoning="now", tool_calls=CALLS),
    Message(role="tool", content="done", tool_call_id="a"),
    Message(role="tool", content="noon", tool_call_id="b"),
)


@pytest.mark.parametrize(
    ("architecture", "family", "shown"),
    [
        (
            "deepseek_v41",
            deepseek_v4_1.FAMILY,
            '<｜DSML｜ calls>\n<｜DSML｜ invoke name="run">\n<｜DSML｜ parameter name="a" string="true">x <b></｜DSML｜ ',
        ),
        (
            "deepseek_v32",
            deepseek_v3_2.FAMILY,
            "\n\n<function_results>\n<result>done</result>\n<result>noon</result>",
        ),
        (
            "kimi_k3",
            kimi_k3.FAMILY,
            '<|open|>message role="tool" tool="now" index="2"<|sep|>noon<|close|>message',
        ),
        (
            "gpt_oss",
            harmony.FAMILY,
            '<|start|>functions.now to=assistant<|channel|>commentary<|message|>"noon"<|end|>',
        ),
    ],
)
def test_a_model_without_template_is_known_by_its_architecture(
    architecture: str, family: ModelFamily, shown: str, describe: Describe
) -> None:
    choice = choose(replace(describe(None), architecture=architecture))
    assert choice.family is family
    assert shown in PromptRenderer(family, describe(None)).render(RAN, (Tool(name="run"),)).text


def test_tools_of_a_message_are_declared_where_it_stands(templates: Templates, describe: Describe) -> None:
    more = Message(role="developer", tools=(Tool(name="now", description="It's a tool"),))
    theirs = describe(templates("Kimi-K3"))
    models = (theirs, replace(theirs, chat_template=None))
    prompts = [
        PromptRenderer(kimi_k3.FAMILY, model).render((TURN, more, TURN), (Tool(name="run"), *more.tools))
        for model in models
    ]
    assert prompts[0] == prompts[1]
    assert prompts[1].text.index("## New Tools Available") < prompts[1].text.index("It's a tool")


def test_gpt_oss_is_told_of_a_late_system_message(describe: Describe) -> None:
    late = (TURN, Message(role="assistant", content="Hello"), Message(role="system", content="Be brief."), TURN)
    text = PromptRenderer(harmony.FAMILY, describe(None)).render(late).text
    assert "<|start|>developer<|message|># Instructions\n\nBe brief.<|end|><|start|>user" in text
