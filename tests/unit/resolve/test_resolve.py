from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.config import GenerationDefaults
from interlock.core.constraint import Choice, JsonValue, Node, Sequence, Text
from interlock.core.engine import EngineTraits
from interlock.core.messages import Message
from interlock.core.output_format import ChoiceFormat, JsonSchemaFormat
from interlock.core.request import GenerateRequest, JsonPolicy, ReasoningOptions
from interlock.core.sampling import SamplingOptions
from interlock.core.tools import Tool, ToolChoice
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily
from interlock.families.qwen3 import FAMILY
from interlock.families.wire.render import PromptRenderer
from interlock.resolve.profile import ModelProfile
from interlock.resolve.resolve import Resolved, resolve
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

TEMPLATE = """\
{%- for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}"""
TOKENIZER = byte_tokenizer()
SPECIAL = TOKENIZER.special_tokens
USER = Message(role="user", content="hi")
F = Tool(name="f", parameters='{"type":"object","properties":{"a":{"type":"integer"}}}')
NOT_HELD = Tool(
    name="g", parameters='{"type":"object","properties":{"a":{"pattern":"(?<=x)y"},"b":{"$ref":"#/no"}}}'
)
SCHEMA = JsonSchemaFormat(schema='{"type":"object","properties":{"a":{"type":"integer"}}}')


def profile(family: ModelFamily = FAMILY, **defaults: object) -> ModelProfile:
    description = ModelDescription(
        tokenizer=TOKENIZER,
        architecture="test",
        name="test",
        chat_template=TEMPLATE,
        context_tokens=0,
        bos_token="",
        eos_token="<|im_end|>",
    )
    return ModelProfile(
        family=family,
        tokenizer=TOKENIZER,
        renderer=PromptRenderer(family, description),
        defaults=GenerationDefaults(**defaults),  # type: ignore[arg-type]
        context_tokens=1000,
        longest_token=max(map(len, TOKENIZER.vocabulary.tokens)),
    )


def resolved(model: ModelProfile | None = None, **fields: object) -> Resolved:
    request = GenerateRequest(request_id="r1", model="m", messages=(USER,))
    return resolve(replace(request, **fields), model or profile())  # type: ignore[arg-type]


def nodes(node: Node | tuple[Node, ...]) -> list[Node]:
    if isinstance(node, tuple):
        return [found for item in node for found in nodes(item)]
    children = getattr(node, "items", ()) or tuple(filter(None, (getattr(node, "item", None),)))
    return [node, *nodes(children)]


def json_values(result: Resolved) -> list[JsonValue]:
    assert result.spec is not None
    return [node for node in nodes(result.spec.root) if isinstance(node, JsonValue)]


def test_a_plain_request_is_free():
    result = resolved(sampling=SamplingOptions(seed=3), stop=("x", "y", "x"))
    assert result.spec is None
    assert result.engine_request.constraint is None
    assert result.engine_request.thinking is None
    assert not result.engine_request.report_accepting
    assert TOKENIZER.decode(result.engine_request.prompt_ids).endswith("hi<|im_end|>\n<|im_start|>assistant\n")
    assert result.engine_request.max_tokens == 1000 - len(result.engine_request.prompt_ids)
    assert (result.stop, result.parser_mode, result.thinking, result.notes) == (
        ("x", "y"),
        "ignore",
        "optional",
        (),
    )


def test_every_id_that_ends_a_turn_stops_the_engine():
    family = replace(FAMILY, stop_tokens=("<|im_start|>", "<|im_end|>", "<|absent|>"))
    assert resolved(profile(family)).engine_request.stop_ids == (
        *TOKENIZER.vocabulary.stop_ids,
        SPECIAL["<|im_start|>"],
    )


def test_client_text_never_becomes_a_special_token():
    def count(text: str) -> int:
        ids = resolved(messages=(Message(role="user", content=text),)).engine_request.prompt_ids
        return sum(token_id in TOKENIZER.vocabulary.special_ids for token_id in ids)

    assert count("<|im_end|><tool_call></think>") == count("hi")


def test_tools_stay_in_the_prompt_whatever_the_choice():
    shown = {
        resolved(tools=(F,), tool_choice=choice).engine_request.prompt_ids
        for choice in (None, ToolChoice(mode="none"), ToolChoice(mode="required"))
    }
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("fields", "mode", "kind"),
    [
        ({}, "ignore", ""),
        ({"tools": (F,)}, "parse", ""),
        ({"tools": (NOT_HELD,)}, "parse", ""),
        ({"tools": (NOT_HELD,), "output_format": SCHEMA}, "parse", "json_schema"),
        ({"tools": (F,), "tool_choice": ToolChoice(mode="none")}, "hide", ""),
        (
            {"tools": (F,), "tool_choice": ToolChoice(mode="none"), "output_format": SCHEMA},
            "ignore",
            "json_schema",
        ),
        ({"tools": (F,), "tool_choice": ToolChoice(mode="required")}, "parse", "tools"),
        ({"tools": (F,), "output_format": SCHEMA}, "parse", "json_schema"),
        ({"tools": (F,), "output_format": SCHEMA, "tool_constraints": "all"}, "parse", "tools+json_schema"),
        ({"output_format": ChoiceFormat(choices=("a",))}, "ignore", "choice"),
    ],
)
def test_how_calls_are_read_and_what_is_constrained(fields, mode, kind):
    result = resolved(**fields)
    assert (result.parser_mode, result.constraint_kind) == (mode, kind)
    assert (result.spec is not None) == bool(kind)


@pytest.mark.parametrize(
    ("fields", "bound"),
    [
        ({}, False),
        ({"tools": (replace(F, strict=True),)}, False),
        ({"tools": (F,), "tool_choice": ToolChoice(mode="required")}, True),
        ({"output_format": SCHEMA}, True),
    ],
)
def test_only_an_answer_without_free_text_is_bound_and_has_its_ends_reported(fields, bound):
    assert resolved(**fields).bound is bound
    assert not resolved(**fields).engine_request.report_accepting
    assert resolved(**fields, stop=("x",)).engine_request.report_accepting is bound


def test_the_spec_holds_what_was_asked():
    result = resolved(output_format=ChoiceFormat(choices=("a", "b", "a")), stop=("x",))
    assert result.spec is not None
    assert {node.options for node in nodes(result.spec.root) if isinstance(node, Choice)} == {("a", "b")}
    assert result.engine_request.report_accepting


@pytest.mark.parametrize(
    ("defaults", "policy", "response", "tool"),
    [
        ({}, JsonPolicy(), ("declared", False, False), ("any", False, False)),
        (
            {"open_objects": True, "tool_order": "declared", "whitespace": "flexible"},
            JsonPolicy(),
            ("declared", True, True),
            ("declared", True, True),
        ),
        (
            {"open_objects": True, "whitespace": "flexible"},
            JsonPolicy(open_objects=False, property_order="any", whitespace="fixed"),
            ("any", False, False),
            ("any", False, False),
        ),
    ],
)
def test_json_policies_of_the_request_go_before_the_servers(defaults, policy, response, tool):
    def of(**fields: object) -> set[tuple[str, bool, bool]]:
        values = json_values(resolved(profile(**defaults), json_policy=policy, **fields))
        return {(value.property_order, value.open_objects, value.flexible_whitespace) for value in values}

    assert of(output_format=SCHEMA) == {response}
    assert of(tools=(F,), tool_choice=ToolChoice(mode="required")) == {tool}


def test_a_constrained_thinking_answer_gets_a_budget_and_a_note():
    result = resolved(output_format=SCHEMA, max_tokens=100)
    assert result.engine_request.thinking is not None
    assert result.engine_request.thinking.max_tokens == 50
    assert "50 tokens" in result.notes[0]


@pytest.mark.parametrize("fields", [{}, {"output_format": SCHEMA}])
def test_thinking_switched_off_leaves_the_constraint_and_no_budget(fields):
    result = resolved(reasoning=ReasoningOptions(enabled=False), **fields)
    assert result.thinking == "closed"
    assert result.engine_request.thinking is None
    assert (result.spec is not None) == bool(fields)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"messages": ()}, "invalid_messages", "messages"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"max_tokens": 990}, "context_length_exceeded", "max_tokens"),
        ({"messages": (Message(role="user", content="x" * 1000),)}, "context_length_exceeded", "messages"),
        ({"stop": ("a", "")}, "invalid_value", "stop"),
        ({"stop": tuple("abcdefghijklmnopqrstuvwxyzABCDEFG")}, "invalid_value", "stop"),
        ({"stop": ("x" * 5000,)}, "invalid_value", "stop"),
        ({"template_kwargs": (("tools", []),)}, "invalid_value", "chat_template_kwargs.tools"),
        ({"sampling": SamplingOptions(temperature=3)}, "invalid_value", "temperature"),
    ],
)
def test_what_is_wrong_is_named(fields, code, param):
    with pytest.raises(InterlockError) as caught:
        resolved(**fields)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_a_context_refusal_has_the_numbers():
    room = resolved().engine_request.max_tokens
    assert resolved(max_tokens=room).engine_request.max_tokens == room
    with pytest.raises(InterlockError) as caught:
        resolved(max_tokens=room + 1)
    for number in (1000, 1000 - room, room + 1):
        assert str(number) in caught.value.message
    assert str(room) in (caught.value.hint or "")


def test_reasoning_can_be_kept_from_the_client():
    assert not resolved(reasoning=ReasoningOptions(include=False)).include_reasoning


def test_what_follows_closed_thinking_is_a_constraint_of_its_own_where_the_engine_needs_one():
    splitting = replace(profile(), engine=EngineTraits(continues_constraints=False))
    asked = GenerateRequest(
        request_id="r", model="m", messages=(USER,), output_format=ChoiceFormat(choices=("a",))
    )
    resolved = resolve(asked, splitting)
    assert resolved.engine_request.thinking is not None
    assert resolved.spec_after_thinking is not None
    assert resolved.spec_after_thinking.root == Sequence(
        (Text("\n\n"), Choice(("a",), "structured_outputs.choice"))
    )
    assert resolve(asked, profile()).spec_after_thinking is None
    free = GenerateRequest(request_id="r", model="m", messages=(USER,))
    assert resolve(free, splitting).spec_after_thinking is None
