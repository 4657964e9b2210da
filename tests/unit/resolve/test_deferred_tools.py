"""Tools whose loading is deferred: unknown to prompt and grammar until a message of the conversation loads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from interlock.core.messages import Message, ToolCall
from interlock.core.request import GenerateRequest
from interlock.core.tools import Tool, ToolChoice
from interlock.errors import InterlockError
from interlock.families.registry import by_name
from interlock.families.wire.render import PromptRenderer
from interlock.resolve.loaded_tools import with_loaded_tools
from interlock.resolve.tools import resolve_tools
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

K = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}
FIND = Tool(name="find")
BIG = Tool(name="big", parameters=json.dumps(K), deferred=True)
HUGE = Tool(name="huge", deferred=True)
USER = Message(role="user", content="hi")
NEXT = Message(role="user", content="go on")


def asks(*ids: str) -> Message:
    return Message(
        role="assistant", tool_calls=tuple(ToolCall(id=id_, name="find", arguments="{}") for id_ in ids)
    )


def result(id_: str, *loads: str, content: str = "") -> Message:
    return Message(role="tool", content=content, tool_call_id=id_, loads=loads)


def request(*messages: Message, **fields: Any) -> GenerateRequest:
    made = GenerateRequest(request_id="r", model="m", messages=(USER, *messages), tools=(FIND, BIG, HUGE))
    return replace(made, **fields)


def names(tools: tuple[Tool, ...]) -> list[str]:
    return [tool.name for tool in tools]


def refusal(made: GenerateRequest) -> InterlockError:
    with pytest.raises(InterlockError) as caught:
        resolve_tools(made, "auto")
    return caught.value


@pytest.mark.parametrize(
    ("messages", "effective", "deferred"),
    [
        ((), ["find"], ["big", "huge"]),
        ((asks("1"), result("1")), ["find"], ["big", "huge"]),
        ((asks("1"), result("1", "big")), ["find", "big"], ["huge"]),
        ((asks("1"), result("1", "big", "big"), NEXT), ["find", "big"], ["huge"]),
        ((asks("1"), result("1", "huge", "find"), asks("1"), result("1", "big")), ["find", "huge", "big"], []),
        ((Message(role="developer", tools=(Tool(name="big"),)),), ["find", "big"], ["huge"]),
    ],
)
def test_a_deferred_tool_is_there_once_a_message_loads_it(messages, effective, deferred):
    context = resolve_tools(request(*messages, tool_choice=ToolChoice(mode="required")), "auto")
    assert names(context.effective_tools) == names(context.callable_tools) == effective
    assert names(context.deferred_tools) == deferred


def test_a_loaded_tool_is_found_where_it_was_declared():
    context = resolve_tools(request(asks("1"), result("1", "huge")), "auto")
    assert context.paths == ("tools[0]", "tools[2]")


@pytest.mark.parametrize(
    ("made", "param", "says"),
    [
        (request(asks("1"), result("1", "find", "none")), "messages[2].loads[1]", "`none`"),
        (request(tools=(BIG,)), "tools", "every tool is deferred"),
        (request(tools=(FIND, BIG, replace(BIG, deferred=False))), "tools[2].function.name", "duplicate"),
        (request(tool_choice=ToolChoice(mode="named", name="big")), "tool_choice", "not found"),
        (request(Message(role="developer", tools=(BIG,))), "messages[1].tools[0].defer_loading", "deferred"),
    ],
)
def test_what_cannot_be_is_refused(made, param, says):
    error = refusal(made)
    assert (error.code, error.param) == ("invalid_tools", param)
    assert says in error.message


def test_choosing_a_tool_that_is_not_loaded_says_so():
    assert "deferred" in str(refusal(request(tool_choice=ToolChoice(mode="named", name="big"))).hint)


@pytest.fixture
def renderer() -> Callable[[str, str], PromptRenderer]:
    def make(family: str, template: str | None) -> PromptRenderer:
        tokenizer = byte_tokenizer()
        return PromptRenderer(
            by_name(family),
            ModelDescription(
                tokenizer=tokenizer,
                architecture="",
                name="",
                chat_template=template,
                context_tokens=0,
                bos_token="",
                eos_token="",
            ),
        )

    return make


def prompt(renderer: PromptRenderer, *messages: Message, **fields: Any) -> str:
    made = request(*messages, **fields)
    context = resolve_tools(made, "auto")
    return renderer.render(with_loaded_tools(made.messages, context), context.effective_tools).text


def test_the_prompt_does_not_grow_with_deferred_tools(renderer) -> None:
    kimi = renderer("kimi_k3", None)
    many = tuple(Tool(name=f"t{number}", deferred=True) for number in range(290))
    assert prompt(kimi, tools=(FIND, *many)) == prompt(kimi, tools=(FIND,))


def test_where_the_model_knows_later_declarations_a_tool_is_shown_where_it_was_loaded(renderer) -> None:
    kimi = renderer("kimi_k3", None)
    before = prompt(kimi, asks("1", "2"), result("1", "big"), result("2", content="none"))
    head, _, tail = before.partition("New Tools Available")
    assert '"big"' not in head
    assert '"big"' in tail
    assert "Tools loaded: big" in head
    assert head.index("Tools loaded") < head.index("none")
    after = prompt(kimi, asks("1", "2"), result("1", "big"), result("2", content="none"), NEXT)
    opener = '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>'
    assert after.startswith(before.removesuffix(opener))


def test_elsewhere_a_loaded_tool_is_listed_behind_the_others(renderer) -> None:
    template = "{{ tools | map(attribute='function.name') | join(',') }}{% for m in messages %}|{{ m.role }}:{{ m.content }}{% endfor %}"
    family = renderer("qwen3", template)
    text = prompt(family, asks("1"), result("1", "big"))
    assert text.startswith("find,big|user:hi|assistant:")
    assert text.endswith("|tool:Tools loaded: big")
