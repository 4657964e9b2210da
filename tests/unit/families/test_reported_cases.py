"""Answers that other servers were reported to read wrong, and how they are read here, under every cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.core.events import ReasoningDelta, TextDelta, ToolCallArguments, ToolCallEnd, ToolCallStart
from interlock.core.tools import Tool
from interlock.families.base import Thinking
from interlock.families.registry import by_name
from interlock.families.wire.parse import StreamParser

DSML = "｜DSML｜"


def tool(name: str, **properties: Any) -> Tool:
    return Tool(name=name, parameters=json.dumps({"type": "object", "properties": properties}))


def read(
    family: str,
    text: str,
    tools: tuple[Tool, ...],
    size: int,
    thinking: Thinking | None = None,
    truncated: bool = False,
) -> tuple[str, str, list[tuple[str, Any]]]:
    """Reasoning, answer and whole calls."""
    declared = by_name(family)
    start: Thinking = thinking or ("optional" if declared.reasoning else "none")
    parser = StreamParser(declared, special_tokens=None, thinking=start, tools="parse", declared=tools)
    events = [event for at in range(0, len(text), size) for event in parser.push_text(text[at : at + size])]
    events += parser.finish(truncated)
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    assert [start.index for start in starts] == list(range(len(starts)))
    assert len({start.id for start in starts}) == len(starts)
    ended = {event.index for event in events if isinstance(event, ToolCallEnd)}
    arguments = ["" for _ in starts]
    for event in events:
        if isinstance(event, ToolCallArguments):
            arguments[event.index] += event.text
    calls = [(one.name, json.loads(arguments[one.index])) for one in starts if one.index in ended]
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    return reasoning, "".join(event.text for event in events if isinstance(event, TextDelta)), calls


def invoke(name: str, body: str) -> str:
    return f'<{DSML}invoke name="{name}">\n{body}\n</{DSML}invoke>'


NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}
PLACE = {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]}
WITH_REF = Tool(
    name="w",
    parameters=json.dumps(
        {
            "type": "object",
            "properties": {"loc": PLACE},
            "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
        }
    ),
)

CASES: dict[str, tuple[str, str, tuple[Tool, ...], tuple[str, str, list[tuple[str, Any]]]]] = {
    "raw text keeps its spaces": (
        "glm_4_7",
        "<tool_call>apply_diff\n<arg_key>s</arg_key>\n<arg_value>    indented  </arg_value>\n</tool_call>",
        (tool("apply_diff", s={"type": "string"}),),
        ("", "", [("apply_diff", {"s": "    indented  "})]),
    ),
    "a call without arguments has an empty object": (
        "glm_4_7",
        "<tool_call>get_current_time</tool_call>",
        (),
        ("", "", [("get_current_time", {})]),
    ),
    "ordinary quotes inside Gemma's lists": (
        "gemma4",
        '<|tool_call>call:run{refs:["ds_1"],opts:{"mode": "fast"},code:<|"|>x<|"|>}<tool_call|>',
        (),
        ("", "", [("run", {"refs": ["ds_1"], "opts": {"mode": "fast"}, "code": "x"})]),
    ),
    "braces and quotes in Gemma's strings are data": (
        "gemma4",
        '<|tool_call>call:edit{path:<|"|>t.txt<|"|>,edits:[{new:<|"|>has } brace<|"|>,old:<|"|>say "hi"<|"|>}]}<tool_call|>',
        (),
        ("", "", [("edit", {"path": "t.txt", "edits": [{"new": "has } brace", "old": 'say "hi"'}]})]),
    ),
    "types behind references and alternatives": (
        "qwen3_coder",
        '<tool_call>\n<function=w>\n<parameter=loc>\n{"city": "Paris"}\n</parameter>\n</function>\n</tool_call>',
        (WITH_REF,),
        ("", "", [("w", {"loc": {"city": "Paris"}})]),
    ),
    "a string that says null is a string, and nothing is coerced": (
        "qwen3_coder",
        (
            "<tool_call>\n<function=f>\n<parameter=s>\nnull\n</parameter>\n<parameter=b>\nmaybe\n</parameter>\n"
            "<parameter=n>\nnull\n</parameter>\n</function>\n</tool_call>"
        ),
        (tool("f", s={"type": "string"}, b={"type": "boolean"}, n={"type": ["integer", "null"]}),),
        ("", "", [("f", {"s": "null", "b": "maybe", "n": None})]),
    ),
    "a nullable string": (
        "minimax_m2",
        (
            '<minimax:tool_call>\n<invoke name="t">\n<parameter name="a">hi</parameter>\n<parameter name="b">null</parameter>\n'
            "</invoke>\n</minimax:tool_call>"
        ),
        (tool("t", a=NULLABLE, b=NULLABLE),),
        ("", "", [("t", {"a": "hi", "b": None})]),
    ),
    "equal raw text in two calls": (
        "deepseek_v3_2",
        f"<{DSML}function_calls>\n"
        + invoke("a", f'<{DSML}parameter name="arguments" string="false">{{"v":7}}</{DSML}parameter>')
        + "\n"
        + invoke("b", f'<{DSML}parameter name="v" string="false">7</{DSML}parameter>')
        + f"\n</{DSML}function_calls>",
        (),
        ("", "", [("a", {"arguments": {"v": 7}}), ("b", {"v": 7})]),
    ),
    "three calls in one block": (
        "deepseek_v4",
        f"<{DSML}tool_calls>\n"
        + "\n".join(
            (
                invoke("search", ""),
                invoke("run_query", ""),
                invoke("get_weather", f'<{DSML}parameter name="city" string="false">-7</{DSML}parameter>'),
            )
        )
        + f"\n</{DSML}tool_calls>",
        (),
        ("", "", [("search", {}), ("run_query", {}), ("get_weather", {"city": -7})]),
    ),
    "JSON in prose is no call": (
        "qwen3",
        'Example:\n```json\n{"name": "fetch", "arguments": {"u": 1}}\n```',
        (),
        ("", 'Example:\n```json\n{"name": "fetch", "arguments": {"u": 1}}\n```', []),
    ),
    "a marker in prose": (
        "qwen3_coder",
        "The `<tool_call>` tag wraps a function block. That is all.",
        (),
        ("", "The `<tool_call>` tag wraps a function block. That is all.", []),
    ),
    "markers cut in pieces": (
        "internlm",
        '<|action_start|><|plugin|>{"name":"get_weather","parameters":{"city":"Paris"}}<|action_end|>',
        (),
        ("", "", [("get_weather", {"city": "Paris"})]),
    ),
    "long arguments, names with dashes, text before the section": (
        "kimi_k2",
        (
            "Let me look.<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>"
            f'{{"q":"{"x" * 20_000}"}}<|tool_call_end|><|tool_call_begin|>functions.b-c:1<|tool_call_argument_begin|>{{}}'
            "<|tool_call_end|><|tool_calls_section_end|>"
        ),
        (),
        ("", "Let me look.", [("a", {"q": "x" * 20_000}), ("b-c", {})]),
    ),
    "a section ends thinking": (
        "kimi_k2",
        (
            "<think>need data<|tool_calls_section_begin|><|tool_call_begin|>functions.w:0<|tool_call_argument_begin|>"
            '{"c":"Rome"}<|tool_call_end|><|tool_calls_section_end|>'
        ),
        (),
        ("need data", "", [("w", {"c": "Rome"})]),
    ),
    "a channel that opens ends thinking": (
        "kimi_k3",
        (
            '<|open|>think<|sep|>hm<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|close|>call<|sep|>'
            "<|close|>tools<|sep|><|close|>message<|sep|>"
        ),
        (),
        ("hm", "", [("f", {})]),
    ),
    "closing markers are no content": (
        "kimi_k3",
        "<|open|>response<|sep|>Hello<|close|>response<|sep|><|close|>message<|sep|>",
        (),
        ("", "Hello", []),
    ),
    "a closed message without its response closed": (
        "kimi_k3",
        "<|open|>response<|sep|>Hello<|close|>message<|sep|>",
        (),
        ("", "Hello", []),
    ),
    "a thought, two calls and an answer, each a message to its recipient": (
        "muse",
        " to=self<|message|>Look.<|eom|><|start|>assistant"
        + "<|eom|><|start|>assistant".join(
            f' to={name}<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n'
            f'<atem:parameter name="q">to=me</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
            for name in ("find", "ask")
        )
        + "<|eom|><|start|>assistant to=user<|message|>Go to=there.",
        (tool("find", q={"type": "string"}), tool("ask", q={"type": "string"})),
        ("Look.", "Go to=there.", [("find", {"q": "to=me"}), ("ask", {"q": "to=me"})]),
    ),
    "a call behind the header of a message": (
        "gigachat3_1",
        'Wait.function call<|role_sep|>\n{"name": "f", "arguments": {"a": 1}}',
        (),
        ("", "Wait.", [("f", {"a": 1})]),
    ),
    "tags without line breaks": (
        "dots",
        'ok<dots_function_call><invoke name="f"><parameter name="days">3</parameter></invoke></dots_function_call>',
        (tool("f", days={"type": "integer"}),),
        ("", "ok", [("f", {"days": 3})]),
    ),
    "keys and values in tags": (
        "k2_horizon",
        (
            "<ifm|think>Hm.</ifm|think><ifm|tool_calls>\n<ifm|tool_call>f\n<ifm|arg_key>s</ifm|arg_key>\n"
            "<ifm|arg_value> 7 </ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>"
        ),
        (tool("f", s={"type": "string"}),),
        ("Hm.", "", [("f", {"s": " 7 "})]),
    ),
    "Python: brackets and apostrophes in strings, text after the list": (
        "llama4",
        '[search(query="hello]world"), note(t="it\'s")] done',
        (),
        ("", " done", [("search", {"query": "hello]world"}), ("note", {"t": "it's"})]),
    ),
    "Python: brackets in prose": (
        "llama4",
        "[O'Reilly] is a publisher",
        (),
        ("", "[O'Reilly] is a publisher", []),
    ),
    "calls joined by a semicolon": (
        "llama3",
        '<|python_tag|>{"name":"get_weather","parameters":{"l":"N;YC"}};{"name":"get_time","parameters":{"tz":"EST"}}',
        (),
        ("", "", [("get_weather", {"l": "N;YC"}), ("get_time", {"tz": "EST"})]),
    ),
    "a JSON answer where calls have no marker": ("llama3", '{"ok": true}', (), ("", '{"ok": true}', [])),
    "a call inside thinking is thinking": (
        "qwen3_coder",
        "<think>\nplan\n<tool_call>\n<function=Finish>\n</function>\n</tool_call>\n</think>",
        (),
        ("plan\n<tool_call>\n<function=Finish>\n</function>\n</tool_call>", "", []),
    ),
    "Harmony: a function with a dash, after thinking": (
        "harmony",
        (
            "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary to=functions.web-browsing "
            "<|constrain|>json<|message|>{}<|call|>"
        ),
        (),
        ("t", "", [("web-browsing", {})]),
    ),
    "Harmony: the recipient before the channel": (
        "harmony",
        '<|channel|>analysis<|message|>t<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a":1}',
        (),
        ("t", "", [("f", {"a": 1})]),
    ),
    "Harmony: control text never gets into a name": (
        "harmony",
        "<|channel|>commentary to=functions.create_event<|channel|>analysis <|constrain|>json<|message|>{}<|call|>",
        (),
        ("", "", [("create_event", {})]),
    ),
    "Harmony: text where a message should begin": (
        "harmony",
        "<|channel|>analysis<|message|>x<|end|>Sure, here",
        (),
        ("x", "Sure, here", []),
    ),
    "Harmony: an answer without a channel": ("harmony", '{"ok":true}', (), ("", '{"ok":true}', [])),
    "Harmony: commentary without tools is shown": (
        "harmony",
        "<|channel|>commentary<|message|>Working on it.<|end|><|start|>assistant<|channel|>final<|message|>Done.",
        (),
        ("", "Working on it.Done.", []),
    ),
    "Harmony: thinking may come again": (
        "harmony",
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|>"
            "<|start|>assistant<|channel|>analysis<|message|>c<|end|><|start|>assistant<|channel|>final<|message|>d"
        ),
        (),
        ("ac", "bd", []),
    ),
    "Harmony: a name with a hyphen": (
        "harmony",
        (
            "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary to=functions.look-up "
            "<|constrain|>json<|message|>{}<|call|>"
        ),
        (tool("look-up"),),
        ("t", "", [("look-up", {})]),
    ),
    "Harmony: a header of no known kind is no text": (
        "harmony",
        "<|start|>assistant<|channel|>commentary--final<|message|>a<|end|><|start|>assistant<|channel|>fin<|message|>b",
        (),
        ("", "ab", []),
    ),
    "Harmony: thinking under a longer header": (
        "harmony",
        "<|channel|>analysis code<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
        (),
        ("a", "b", []),
    ),
    "Harmony: a header that never ends": (
        "harmony",
        "<|channel|>final<|message|>b<|end|><|channel|>fi",
        (),
        ("", "b", []),
    ),
    "Harmony: a message to somebody who is no function": (
        "harmony",
        "<|channel|>commentary to=browser code<|message|>x",
        (),
        ("", "<|channel|>commentary to=browser code<|message|>x", []),
    ),
    "Harmony: a channel inside the header of a call": (
        "harmony",
        "<|channel|>commentary to=functions.add<|channel|>analysis <|constrain|>json<|message|>{}<|call|>",
        (tool("add"),),
        ("", "", [("add", {})]),
    ),
    "Harmony: a call on the channel of thinking": (
        "harmony",
        '<|channel|>analysis to=functions.add code<|message|>{"a": 1}<|call|>',
        (tool("add"),),
        ("", "", [("add", {"a": 1})]),
    ),
    "Harmony: a word of the header is stuck to the name": (
        "harmony",
        "<|channel|>commentary to=functions.shelljson<|message|>{}<|call|>",
        (tool("shell"),),
        ("", "", [("shell", {})]),
    ),
    "Harmony: a tool whose name ends like the header": (
        "harmony",
        " to=functions.shelljson<|channel|>commentary json<|message|>{}<|call|>",
        (tool("shell"), tool("shelljson")),
        ("", "", [("shelljson", {})]),
    ),
    "Calls with the same text, each read by its own tool": (
        "qwen3_coder",
        "<tool_call>\n"
        + "".join(
            f"<function={name}>\n<parameter=v>\n7\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"
            for name in ("a", "b", "a")
        ).removesuffix("\n<tool_call>\n"),
        (tool("a", v={"type": "string"}), tool("b", v={"type": "integer"})),
        ("", "", [("a", {"v": "7"}), ("b", {"v": 7}), ("a", {"v": "7"})]),
    ),
    "Calls with the same text, and a parameter of the name arguments": (
        "deepseek_v4",
        f"<{DSML}tool_calls>\n"
        + "\n".join(
            invoke(name, f'<{DSML}parameter name="arguments" string="false">{{"v": 7}}</{DSML}parameter>')
            for name in "ab"
        )
        + f"\n</{DSML}tool_calls>",
        (tool("a", arguments={"type": "object"}), tool("b", v={"type": "integer"})),
        ("", "", [("a", {"arguments": {"v": 7}}), ("b", {"arguments": {"v": 7}})]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reported_answers(name: str) -> None:
    family, text, tools, expected = CASES[name]
    for size in (1, 2, 3, 8, 64, len(text)):
        assert read(family, text, tools, size) == expected, size


def test_thinking_switched_off_leaves_calls_to_the_parser() -> None:
    text = '<tool_call>\n{"name":"greet_world","arguments":{}}\n</tool_call>'
    assert read("qwen3", text, (), 5, "closed") == ("", "", [("greet_world", {})])


@pytest.mark.parametrize("text", ["Hello <tool_ca", "Hello <tool_call>", 'Hello <tool_call>\n{"name": "f"'])
@pytest.mark.parametrize("size", [1, 100])
def test_an_answer_cut_inside_a_marker_holds_no_call(text: str, size: int) -> None:
    reasoning, answer, calls = read("qwen3", text, (), size, truncated=True)
    assert (reasoning, calls) == ("", [])
    assert answer.startswith("Hello")
