from __future__ import annotations

import pytest

from interlock.core.messages import Message, ToolCall
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.resolve.messages import resolve_messages

USER = Message(role="user", content="hi")


def call(id_: str = "1", arguments: str = "{}", name: str = "f") -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=arguments)


def assistant(*calls: ToolCall) -> Message:
    return Message(role="assistant", tool_calls=calls)


def result(id_: str | None = "1") -> Message:
    return Message(role="tool", content="ok", tool_call_id=id_)


@pytest.mark.parametrize(
    "messages",
    [
        (USER,),
        (Message(role="system", content="be kind"),),
        (Message(role="developer", tools=(Tool(name="f"),)), USER),
        (USER, Message(role="assistant", content=""), USER),
        (USER, Message(role="assistant", reasoning="hm"), USER),
        (USER, assistant(call("1"), call("2")), result("2"), result("1")),
        (USER, assistant(call("1"), call("2")), result("2"), USER),
        (USER, assistant(call("1")), result("1"), assistant(call("1")), result("1")),
        (USER, assistant(call("1")), USER, result("1")),
    ],
)
def test_a_sound_conversation_passes_unchanged(messages):
    assert resolve_messages(messages) == messages


def test_empty_arguments_mean_an_empty_object_and_others_keep_their_spelling():
    spelt = '{"b": 1.50, "a": 123456789012345678901234567890}'
    resolved = resolve_messages((assistant(call("1", ""), call("2", " \n"), call("3", spelt)), result("1")))
    assert [call.arguments for call in resolved[0].tool_calls] == ["{}", "{}", spelt]


@pytest.mark.parametrize(
    ("messages", "param", "words"),
    [
        ((), "messages", "at least one"),
        ((USER, result("1")), "messages[1].tool_call_id", "'1'"),
        ((result("1"), assistant(call("1")), USER), "messages[0].tool_call_id", "no earlier"),
        ((assistant(call("1")), result("2")), "messages[1].tool_call_id", "'2'"),
        ((assistant(call("1")), result(None)), "messages[1].tool_call_id", "needs the id"),
        ((assistant(call("1"), call("1")), result("1")), "messages[0].tool_calls[1].id", "duplicate"),
        ((assistant(call("")), USER), "messages[0].tool_calls[0].id", "needs an id"),
        ((assistant(call(name="")), USER), "messages[0].tool_calls[0].function.name", "needs the name"),
        (
            (USER, Message(role="assistant"), USER),
            "messages[1].content",
            "needs content, reasoning or tool calls",
        ),
        ((Message(role="user"),), "messages[0].content", "a user message needs content"),
        (
            (Message(role="user", content="x", tool_calls=(call(),)),),
            "messages[0].tool_calls",
            "a user message cannot have tool calls",
        ),
        (
            (Message(role="user", content="x", tools=(Tool(name="f"),)),),
            "messages[0].tools",
            "only a developer",
        ),
        ((Message(role="user", content="x", tool_call_id="1"),), "messages[0].tool_call_id", "cannot have"),
        ((USER, Message(role="assistant", content="x")), "messages[1].role", "another role"),
        ((USER, assistant(call())), "messages[1].role", "another role"),
        ((Message(role="user", content="\ud800"),), "messages[0].content", "surrogate"),
    ],
)
def test_a_broken_rule_is_named_with_its_path(messages, param, words):
    with pytest.raises(InterlockError) as caught:
        resolve_messages(messages)
    assert caught.value.code == "invalid_messages"
    assert caught.value.param == param
    assert words in caught.value.message


@pytest.mark.parametrize(
    "arguments", ["[]", "1", "null", '"x"', "{", '{"a": NaN}', "{'a': 1}", '{"a": 1} x', "[" * 100_000]
)
def test_arguments_must_be_one_json_object(arguments):
    with pytest.raises(InterlockError) as caught:
        resolve_messages((USER, assistant(call(), call("2", arguments)), result()))
    assert caught.value.param == "messages[1].tool_calls[1].function.arguments"
