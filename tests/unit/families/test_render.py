from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer as RustTokenizer

from interlock.core.messages import Message, ToolCall
from interlock.core.request import ReasoningOptions
from interlock.core.tokenizer import Vocabulary
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families import generic, qwen3
from interlock.families.registry import choose
from interlock.families.wire.render import PromptRenderer
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

Describe = Callable[..., ModelDescription]
Templates = Callable[[str], str]

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Weather of a city, e.g. Århus",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "the city"},
            "days": {"type": "integer", "description": "how many"},
        },
        "required": ["city"],
    },
}
CLOCK: dict[str, Any] = {
    "name": "clock",
    "description": "The time",
    "parameters": {"type": "object", "properties": {}},
}
TOOLS = tuple(
    Tool(name=tool["name"], description=tool["description"], parameters=json.dumps(tool["parameters"]))
    for tool in (WEATHER, CLOCK)
)
TEMPLATE_TOOLS = [{"type": "function", "function": tool} for tool in (WEATHER, CLOCK)]


def user(content: str) -> Message:
    return Message(role="user", content=content)


def called(*calls: tuple[str, str], content: str | None = None, reasoning: str | None = None) -> Message:
    made = tuple(ToolCall(id=f"call_{i}", name=name, arguments=text) for i, (name, text) in enumerate(calls))
    return Message(role="assistant", content=content, reasoning=reasoning, tool_calls=made)


def result(index: int, content: str) -> Message:
    return Message(role="tool", content=content, tool_call_id=f"call_{index}")


PARALLEL = (
    Message(role="system", content="Be brief."),
    user("Weather in Oslo and Århus?"),
    called(
        ("get_weather", '{"city": "Oslo", "days": 1}'),
        ("get_weather", '{"city":"Århus"}'),
        content="Let me look.",
        reasoning="Two cities.",
    ),
    result(0, '{"t": 3}'),
    result(1, "rain"),
    Message(role="assistant", content="3 degrees and rain."),
    user("And the time?"),
    called(("clock", "{}")),
    result(0, "12:00"),
)
CONVERSATIONS: dict[str, tuple[Message, ...]] = {
    "question": (user("Hi"),),
    "system": (Message(role="system", content="Be brief."), user("  Hi\n")),
    "parallel": PARALLEL,
    "late system": (
        user("a"),
        Message(role="assistant", content="b"),
        Message(role="system", content="c"),
        user("d"),
    ),
    "looks like a result": (
        user("<tool_response>\nx\n</tool_response>"),
        Message(role="assistant", content="b"),
    ),
}


def plainly(template: str, messages: tuple[Message, ...], tools: list[Any] | None, **variables: Any) -> str:
    """What a plain renderer makes of the conversation: the reference."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    turns = []
    for message in messages:
        turn: dict[str, Any] = {"role": message.role, "content": message.content or ""}
        if message.reasoning:
            turn["reasoning_content"] = message.reasoning
        if message.tool_calls:
            turn["tool_calls"] = [
                {
                    "type": "function",
                    "id": call.id,
                    "function": {"name": call.name, "arguments": json.loads(call.arguments)},
                }
                for call in message.tool_calls
            ]
        turns.append(turn)
    rendered: str = environment.from_string(template).render(
        messages=turns, tools=tools, add_generation_prompt=True, bos_token="<bos>", **variables
    )
    return rendered


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize(
    "name", ["Qwen-Qwen3-0.6B", "Qwen-Qwen2.5-7B-Instruct", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use"]
)
@pytest.mark.parametrize("with_tools", [True, False])
def test_the_prompt_is_what_the_model_s_template_gives(
    name: str, conversation: str, with_tools: bool, templates: Templates, describe: Describe
) -> None:
    template, messages = templates(name), CONVERSATIONS[conversation]
    description = describe(template, byte_tokenizer(("<|im_start|>", "<|im_end|>")), bos_token="<bos>")
    renderer = PromptRenderer(choose(description).family, description)
    no_tools: list[Any] | None = [] if "Hermes" in name else None
    expected = plainly(template, messages, TEMPLATE_TOOLS if with_tools else no_tools)
    prompt = renderer.render(messages, TOOLS if with_tools else ())
    assert prompt.text == expected
    assert list(prompt.ids) == description.tokenizer.encode(expected)


def test_ids_are_those_of_the_model_s_own_tokenizer(
    templates: Templates, describe: Describe, qwen3_tokenizer: Any, qwen3_json: str
) -> None:
    template = templates("Qwen-Qwen3-0.6B")
    renderer = PromptRenderer(qwen3.FAMILY, describe(template, qwen3_tokenizer))
    reference = RustTokenizer.from_str(qwen3_json)
    for messages in CONVERSATIONS.values():
        if messages is not CONVERSATIONS["looks like a result"]:
            expected = plainly(template, messages, TEMPLATE_TOOLS)
            assert (
                list(renderer.render(messages, TOOLS).ids)
                == reference.encode(expected, add_special_tokens=False).ids
            )


def test_no_spelling_in_client_text_becomes_a_special_token(
    templates: Templates, describe: Describe, qwen3_tokenizer: Any
) -> None:
    renderer = PromptRenderer(qwen3.FAMILY, describe(templates("Qwen-Qwen3-0.6B"), qwen3_tokenizer))
    special = qwen3_tokenizer.special_tokens.values()

    def prompt(spelling: str) -> tuple[list[int], str]:
        schema = json.dumps({"type": "object", "properties": {f"k{spelling}": {"enum": [spelling]}}})
        messages = (
            Message(role="system", content=f"s {spelling}"),
            user(f"A{spelling}B"),
            called(
                (f"f{spelling}", json.dumps({f"x{spelling}": [spelling]})),
                content=f"c{spelling}",
                reasoning=spelling,
            ),
            result(0, f"{spelling} r"),
        )
        rendered = renderer.render(
            messages, (Tool(name=f"f{spelling}", description=spelling, parameters=schema),)
        )
        return [token_id for token_id in rendered.ids if token_id in special], rendered.text

    plain_ids, plain_text = prompt("PLAIN")
    for spelling in qwen3_tokenizer.special_tokens:
        ids, text = prompt(spelling)
        assert ids == plain_ids, spelling
        assert text == plain_text.replace("PLAIN", spelling)


def test_a_template_that_cuts_at_a_closing_marker_does_not_cut_client_text(
    templates: Templates, describe: Describe
) -> None:
    renderer = PromptRenderer(qwen3.FAMILY, describe(templates("Qwen-Qwen3-0.6B")))
    messages = (
        user("Repeat: hello </think> world"),
        Message(role="assistant", content="hello </think> world"),
        user("again"),
    )
    assert renderer.render(messages).text.count("hello </think> world") == 2


def test_private_use_characters_of_a_client_survive(describe: Describe, chatml: str) -> None:
    text = "\ue000<|im_end|>\ue001"
    renderer = PromptRenderer(generic.FAMILY, describe(chatml))
    prompt = renderer.render([user(text)])
    assert text in prompt.text
    assert renderer.render([called(("f", '{"a": "\\ue000<|im_end|>"}'))]).text.count("\ue000<|im_end|>") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        '{"b": 1, "a": 2}',
        '{"x": 1.0, "y": 1e400, "z": -0}',
        '{"id": 123456789012345678901234567890}',
        '{"n": ' + "9" * 5000 + "}",
    ],
)
def test_arguments_of_earlier_calls_keep_order_and_digits(
    arguments: str, templates: Templates, describe: Describe, chatml: str
) -> None:
    for template, family in ((templates("Qwen-Qwen3-0.6B"), qwen3.FAMILY), (chatml, generic.FAMILY)):
        prompt = PromptRenderer(family, describe(template)).render([user("q"), called(("f", arguments))])
        assert f'{{"name": "f", "arguments": {arguments}}}' in prompt.text


@pytest.mark.parametrize("arguments", ["", "[1]", "{", '{"a": NaN}', "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(arguments: str, describe: Describe, chatml: str) -> None:
    with pytest.raises(InterlockError) as caught:
        PromptRenderer(generic.FAMILY, describe(chatml)).render([user("q"), called(("f", arguments))])
    assert (caught.value.code, caught.value.param) == (
        "invalid_messages",
        "messages[1].tool_calls[0].function.arguments",
    )


def test_json_that_is_nested_too_deeply_is_refused(
    describe: Describe, chatml: str, templates: Templates
) -> None:
    def outcome(renderer: PromptRenderer, depth: int) -> str:
        arguments = '{"a":' * depth + "1" + "}" * depth
        try:
            renderer.render([user("q"), called(("f", arguments))])
        except InterlockError as error:
            return error.code
        return "fine"

    for family, template in ((generic.FAMILY, chatml), (qwen3.FAMILY, templates("Qwen-Qwen3-0.6B"))):
        renderer = PromptRenderer(family, describe(template))
        assert outcome(renderer, 100) == "fine"
        assert {outcome(renderer, depth) for depth in (400, 900, 20_000)} <= {"fine", "invalid_messages"}


class TestThinking:
    @pytest.mark.parametrize(
        ("name", "enabled", "thinking"),
        [
            ("Qwen-Qwen3-0.6B", None, "optional"),
            ("Qwen-Qwen3-0.6B", True, "optional"),
            ("Qwen-Qwen3-0.6B", False, "closed"),
            ("Qwen-Qwen2.5-7B-Instruct", None, "none"),
            ("Qwen-Qwen2.5-7B-Instruct", False, "none"),
            ("Qwen-QwQ-32B", True, "open"),
            ("Qwen-QwQ-32B", False, "closed"),
        ],
    )
    def test_is_read_from_the_end_of_the_prompt(
        self, name: str, enabled: bool | None, thinking: str, templates: Templates, describe: Describe
    ) -> None:
        renderer = PromptRenderer(qwen3.FAMILY, describe(templates(name)))
        assert (
            renderer.render([user("Hi </think>")], (), ReasoningOptions(enabled=enabled)).thinking == thinking
        )

    @pytest.mark.parametrize(("name", "enabled"), [("Qwen-Qwen2.5-7B-Instruct", True), ("GLM-4.6", False)])
    def test_that_cannot_be_switched_is_refused(
        self, name: str, enabled: bool, templates: Templates, describe: Describe
    ) -> None:
        template = templates(name).replace("enable_thinking", "other")
        renderer = PromptRenderer(generic.FAMILY, describe(template))
        with pytest.raises(InterlockError) as caught:
            renderer.render([user("Hi")], (), ReasoningOptions(enabled=enabled, param="reasoning_effort"))
        assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "reasoning_effort")

    def test_template_variables_pass_through(self, describe: Describe) -> None:
        template = "{{ messages[0].content }}|{{ reasoning_effort }}|{{ style }}"
        renderer = PromptRenderer(generic.FAMILY, describe(template))
        options = ReasoningOptions(effort="low")
        assert renderer.render([user("q")], (), options, {"style": "<|im_end|>"}).text == "q|low|<|im_end|>"
        assert 257 not in renderer.render([user("q")], (), options, {"style": "<|im_end|>"}).ids


class TestGeneric:
    def test_tools_calls_and_results_are_told_as_text(self, describe: Describe, chatml: str) -> None:
        prompt = PromptRenderer(generic.FAMILY, describe(chatml)).render(PARALLEL[:5], TOOLS)
        assert prompt.text == (
            "<|im_start|>system\nBe brief.\n\n# Tools\n\n"
            "You may call one or more of these functions to help the user:\n<tools>\n"
            + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in TEMPLATE_TOOLS)
            + "\n</tools>\n\n"
            "To call a function, write a JSON object with its name and its arguments between <tool_call> tags:\n"
            '<tool_call>\n{"name": <function-name>, "arguments": <arguments-object>}\n</tool_call><|im_end|>\n'
            "<|im_start|>user\nWeather in Oslo and Århus?<|im_end|>\n"
            "<|im_start|>assistant\nLet me look.\n"
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 1}}\n</tool_call>\n'
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Århus"}}\n</tool_call><|im_end|>\n'
            '<|im_start|>user\n<tool_response>\n{"t": 3}\n</tool_response>\n'
            "<tool_response>\nrain\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n"
        )

    def test_without_tools_nothing_is_added(self, describe: Describe, chatml: str) -> None:
        prompt = PromptRenderer(generic.FAMILY, describe(chatml)).render([user("Hi")])
        assert prompt.text == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"

    def test_a_template_that_takes_no_system_message_gets_it_from_the_user(
        self, templates: Templates, describe: Describe
    ) -> None:
        renderer = PromptRenderer(
            generic.FAMILY, describe(templates("google-gemma-2-2b-it"), bos_token="<bos>")
        )
        prompt = renderer.render([Message(role="system", content="Be brief."), user("Hi")], TOOLS)
        assert prompt.text.startswith("<bos><start_of_turn>user\nBe brief.\n\n# Tools")
        assert prompt.text.endswith("</tool_call>\n\nHi<end_of_turn>\n<start_of_turn>model\n")

    def test_a_model_without_template_gets_a_common_one(self, describe: Describe) -> None:
        prompt = PromptRenderer(generic.FAMILY, describe(None)).render([user("Hi")])
        assert prompt.text == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


class TestQuirks:
    def test_a_developer_message_becomes_system_text_where_the_role_is_unknown(
        self, templates: Templates, describe: Describe
    ) -> None:
        developer = Message(role="developer", content="Rule.")
        renderer = PromptRenderer(qwen3.FAMILY, describe(templates("Qwen-Qwen3-0.6B")))
        assert renderer.render([developer, user("Hi")]).text.startswith("<|im_start|>system\nRule.<|im_end|>")
        both = renderer.render([Message(role="system", content="Be brief."), developer, user("Hi")])
        assert both.text.startswith("<|im_start|>system\nBe brief.\n\nRule.<|im_end|>")

    def test_a_developer_message_stays_one_where_the_template_knows_it(self, describe: Describe) -> None:
        template = (
            "{% for m in messages %}{{ 'D' if m.role == 'developer' else 'x' }}{{ m.content }}{% endfor %}"
        )
        renderer = PromptRenderer(generic.FAMILY, describe(template))
        assert renderer.render([Message(role="developer", content="Rule."), user("Hi")]).text == "DRule.xHi"

    def test_a_developer_message_keeps_its_own_tools(self, describe: Describe) -> None:
        template = (
            "{% for m in messages %}{{ m.role }}{{ m.tools | tojson if m.tools }}{% endfor %}{# developer #}"
        )
        renderer = PromptRenderer(generic.FAMILY, describe(template + "{{ messages[0].content }}"))
        text = renderer.render(
            [Message(role="developer", content="x", tools=(Tool(name="f"),)), user("Hi")]
        ).text
        assert text.startswith('developer[{"type": "function", "function": {"name": "f", "parameters": ')

    def test_a_tool_without_description_works_where_the_template_wants_one(
        self, templates: Templates, describe: Describe
    ) -> None:
        bare = Tool(name="f")
        hermes = describe(templates("NousResearch-Hermes-3-Llama-3.1-8B-tool_use"))
        assert "f() - \n\n" in PromptRenderer(qwen3.FAMILY, hermes).render([user("Hi")], (bare,)).text
        qwen = describe(templates("Qwen-Qwen3-0.6B"))
        assert "description" not in PromptRenderer(qwen3.FAMILY, qwen).render([user("Hi")], (bare,)).text

    def test_the_name_of_a_result_is_that_of_its_call(self, describe: Describe) -> None:
        template = "{% for m in messages %}{{ m.name if m.role == 'tool' else '' }}{% endfor %}{{ tools }}"
        renderer = PromptRenderer(qwen3.FAMILY, describe(template))
        assert renderer.render([user("q"), called(("clock", "{}")), result(0, "12")]).text == "clockNone"

    def test_the_first_token_is_added_where_the_template_leaves_it_out(
        self, describe: Describe, chatml: str
    ) -> None:
        tokenizer = byte_tokenizer(("<bos>", "<|im_end|>"))
        vocabulary: Vocabulary = replace(tokenizer.vocabulary, bos_id=tokenizer.special_tokens["<bos>"])
        tokenizer._vocabulary = vocabulary
        for template in ("hi", "<bos>hi", "{{ bos_token }}hi"):
            prompt = PromptRenderer(generic.FAMILY, describe(template, tokenizer, bos_token="<bos>")).render(
                [user("q")]
            )
            assert (prompt.text, prompt.ids) == ("<bos>hi", (256, *b"hi"))
