"""The rules of the end: what an answer may call itself, however it was cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from interlock.core.engine import EngineFailure, EngineFinishReason, EngineOutput
from interlock.core.events import (
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.tools import Tool
from interlock.families.qwen3 import FAMILY
from interlock.families.wire.parse import StreamParser
from interlock.serving.output import OutputProcessor, OutputRules
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENS = byte_tokenizer()  # the family's markers are tokens
TEXT = byte_tokenizer(special_tokens=("<|im_end|>",))  # the family's markers are text
VOCABULARIES = pytest.mark.parametrize("tokenizer", [TOKENS, TEXT], ids=["token markers", "text markers"])
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "1é2", "b": [3]}}\n</tool_call>'
SECOND = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'
ARGUMENTS = {"a": "1é2", "b": [3]}
DECLARED = (Tool(name="f"), Tool(name="g"))


class Reader:
    """One answer, read to its end."""

    def __init__(self, tokenizer=TOKENS, *, thinking="none", tools="parse", **rules: object) -> None:
        special = {token_id: spelling for spelling, token_id in tokenizer.special_tokens.items()}
        parser = StreamParser(FAMILY, special_tokens=special, thinking=thinking, tools=tools, declared=DECLARED)
        rules.setdefault("reasoning_is_text", tokenizer is TEXT)
        self.tokenizer = tokenizer
        self.processor = OutputProcessor(OutputRules(**rules), tokenizer.vocabulary, parser)  # type: ignore[arg-type]
        self.events: list[Event] = []

    def push(self, token_ids: Iterable[int] = (), **fields: object) -> None:
        if not self.processor.finished:
            output = EngineOutput(request_id="r", token_ids=tuple(token_ids), num_prompt_tokens=5)
            self.events += self.processor.push(structs.replace(output, **fields))  # type: ignore[arg-type]

    def read(
        self, text: str | Sequence[int], finish: EngineFinishReason = "stop", block: int = 1, **last: object
    ) -> Reader:
        ids = self.tokenizer.encode(text) if isinstance(text, str) else list(text)
        for start in range(0, len(ids), block):
            self.push(ids[start : start + block])
        self.push(finish_reason=finish, **last)
        ends = [event for event in self.events if isinstance(event, Finished | Failed)]
        assert ends == self.events[-1:]
        return self

    @property
    def end(self) -> Finished | Failed:
        end = self.events[-1]
        assert isinstance(end, Finished | Failed)
        return end

    @property
    def reason(self) -> str:
        assert isinstance(self.end, Finished), self.end
        return self.end.reason

    def joined(self, kind: type[TextDelta | ReasoningDelta | ToolCallArguments]) -> str:
        return "".join(event.text for event in self.events if isinstance(event, kind))

    @property
    def text(self) -> str:
        return self.joined(TextDelta)

    def calls(self, kind: type[ToolCallStart | ToolCallEnd]) -> list[int]:
        return [event.index for event in self.events if isinstance(event, kind)]


@VOCABULARIES
@pytest.mark.parametrize("block", [1, 3, 1000])
def test_a_call_with_text_before_it_ends_with_tool_calls(tokenizer, block):
    answer = Reader(tokenizer).read("Let me see. " + CALL, block=block)
    assert answer.reason == "tool_calls"
    assert answer.text.strip() == "Let me see."
    assert json.loads(answer.joined(ToolCallArguments)) == ARGUMENTS
    assert (answer.calls(ToolCallStart), answer.calls(ToolCallEnd)) == ([0], [0])


@VOCABULARIES
def test_text_ends_with_stop(tokenizer):
    answer = Reader(tokenizer).read("Grüße 🙂")
    assert (answer.text, answer.reason) == ("Grüße 🙂", "stop")


@VOCABULARIES
def test_a_call_cut_at_any_length_is_never_presented_as_whole(tokenizer):
    ids = tokenizer.encode("Hm. " + CALL)
    ended = []
    for count in range(len(ids) + 1):
        answer = Reader(tokenizer).read(ids[:count], "length")
        assert answer.reason == "length"
        ended.append(answer.calls(ToolCallEnd) == [0])
        if ended[-1]:
            assert json.loads(answer.joined(ToolCallArguments)) == ARGUMENTS
    head = "Hm. " + CALL[: CALL.index("}}") + 1]
    assert not any(ended[: len(tokenizer.encode(head))])
    assert ended[-1]


@VOCABULARIES
@pytest.mark.parametrize("length", range(1, 16))
def test_half_a_marker_of_a_required_call_is_not_content(tokenizer, length):
    cut = tokenizer.encode(CALL)[:length]
    assert Reader(tokenizer, bound=True, calls_only=True).read(cut, "length").joined(TextDelta) == ""


@VOCABULARIES
@pytest.mark.parametrize("length", range(1, 16))
def test_half_a_marker_after_a_call_of_a_bound_answer_is_not_content(tokenizer, length):
    ids = [*tokenizer.encode(CALL), *tokenizer.encode("\n" + SECOND)[:length]]
    reader = Reader(tokenizer, bound=True).read(ids, "length")
    assert (reader.joined(TextDelta), reader.reason) == ("", "length")


@VOCABULARIES
def test_a_call_cut_by_any_stop_string_is_never_presented_as_whole(tokenizer):
    body = CALL.removeprefix("<tool_call>").removesuffix("\n</tool_call>")
    whole_at = body.index("}}") + 1
    for width in (1, 3):
        for start in range(len(body) - width + 1):
            stop = body[start : start + width]
            if tokenizer is TEXT and stop in "<tool_call>":
                continue  # it ends plain text before there is a call
            answer = Reader(tokenizer, stop=(stop,)).read(CALL)
            if body.index(stop) < whole_at:
                assert answer.reason == "length", stop
                assert answer.calls(ToolCallEnd) == [], stop
            else:
                assert answer.reason == "tool_calls", stop
                assert json.loads(answer.joined(ToolCallArguments)) == ARGUMENTS


def test_a_stop_string_between_the_arguments_and_the_end_of_a_bound_call_is_a_cut():
    answer = Reader(bound=True, stop=("\n</",)).read(CALL + "\n</", is_accepting=True)
    assert answer.reason == "length"


@VOCABULARIES
def test_a_stop_string_ends_text_and_is_not_part_of_it(tokenizer):
    answer = Reader(tokenizer, stop=("\n\n", "END")).read("one END two")
    assert (answer.text, answer.reason) == ("one ", "stop")


def test_a_stop_string_is_part_of_the_text_where_it_is_wanted():
    for stop in ("END", "<|im_start|>"):
        answer = Reader(stop=(stop,), include_stop=True).read(f"one {stop} two", block=3)
        assert (answer.text, answer.reason, answer.end.stop_string) == (f"one {stop}", "stop", stop)


@pytest.mark.parametrize(("accepting", "expected"), [({3}, "stop"), ({2}, "length")])
def test_a_stop_string_that_is_shown_belongs_to_a_bound_answer(accepting, expected):
    answer = Reader(tools="ignore", bound=True, stop=("c",), include_stop=True)
    for count, token_id in enumerate(answer.tokenizer.encode("abcd"), 1):
        answer.push([token_id], is_accepting=count in accepting)
    assert (answer.text, answer.reason) == ("abc", expected)


def test_no_stop_string_begins_before_min_tokens():
    answer = Reader(stop=("ab",), min_tokens=3).read("ababab")
    assert answer.text == "abab"


def test_a_stop_string_after_a_whole_call_keeps_the_call():
    answer = Reader(stop=("\n<",)).read(CALL + "\n<")
    assert answer.reason == "tool_calls"


def test_nothing_after_the_stop_string_counts():
    answer = Reader(stop=("x",))
    answer.push(answer.tokenizer.encode("abxdefg"))
    assert answer.reason == "stop"
    assert answer.end.usage.completion_tokens == 3


def test_a_stop_string_that_spells_a_special_token_stops_at_it():
    answer = Reader(stop=("<tool_call>",)).read("Hm. " + CALL)
    assert (answer.text.strip(), answer.reason) == ("Hm.", "stop")
    assert answer.calls(ToolCallStart) == []


@VOCABULARIES
def test_what_is_held_back_for_a_stop_string_comes_at_the_end(tokenizer):
    assert Reader(tokenizer, stop=("STOP",)).read("a STO").text == "a STO"


@VOCABULARIES
@pytest.mark.parametrize("block", [1, 2, 5, 1000])
def test_stop_strings_do_not_apply_inside_reasoning(tokenizer, block):
    answer = Reader(tokenizer, thinking="optional", stop=("x", ">ab", "zq"))
    answer.read("<think>\nx >ab zq\n</think>\n\nyes x no", block=block)
    assert "x >ab zq" in answer.joined(ReasoningDelta)
    assert (answer.text.strip(), answer.reason) == ("yes", "stop")


@VOCABULARIES
def test_reasoning_is_counted_and_dropped_where_it_is_not_wanted(tokenizer):
    thought, rest = "<think>\nhm\n</think>", "\n\nyes"
    shown = Reader(tokenizer, thinking="optional").read(thought + rest)
    hidden = Reader(tokenizer, thinking="optional", include_reasoning=False).read(thought + rest)
    assert shown.joined(ReasoningDelta).strip() == "hm"
    assert hidden.joined(ReasoningDelta) == ""
    assert hidden.text == shown.text
    usage = shown.end.usage
    assert usage.completion_tokens == len(tokenizer.encode(thought + rest))
    if tokenizer is TOKENS:
        assert usage.reasoning_tokens == len(tokenizer.encode(thought))
    assert 0 < usage.reasoning_tokens < usage.completion_tokens


@pytest.mark.parametrize(
    ("text", "stop", "accepting", "expected"),
    [
        ("ab\ncd", "\n", {2}, "stop"),
        ("ab\ncd", "\n", {3}, "length"),  # the constraint could end after the stop string, not before it
        ("ab\ncd", "\n", set(), "length"),
        ("ab\n\ncd", "\n\n", {1, 2, 3, 4}, "stop"),
        ('{"a":1}', "}", {7}, "length"),
    ],
)
def test_a_stop_string_in_a_bound_answer_is_an_end_only_where_the_constraint_has_one(
    text, stop, accepting, expected
):
    answer = Reader(tools="ignore", bound=True, stop=(stop,))
    for count, token_id in enumerate(answer.tokenizer.encode(text), 1):
        answer.push([token_id], is_accepting=count in accepting)
    assert answer.reason == expected


@pytest.mark.parametrize(
    ("finish", "is_accepting", "expected"),
    [
        ("stop", True, "stop"),
        ("stop", False, "length"),
        ("length", True, "length"),
        ("length", False, "length"),
    ],
)
def test_a_constrained_answer_that_may_not_end_there_was_cut(finish, is_accepting, expected):
    answer = Reader(tools="ignore", bound=True).read("abc", finish, is_accepting=is_accepting)
    assert answer.reason == expected


def test_an_abort_is_called_one_and_completes_nothing():
    answer = Reader().read(CALL[:40], "abort")
    assert answer.reason == "abort"
    assert answer.calls(ToolCallEnd) == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (EngineFailure(code="worker_died", message="gone"), "worker_died"),
        (EngineFailure(code="no such code", message="?"), "internal_error"),
        (None, "internal_error"),
    ],
)
def test_an_engine_error_fails_the_answer(failure, code):
    answer = Reader().read("abc", "error", failure=failure)
    assert isinstance(answer.end, Failed)
    assert answer.end.error.code == code
    assert answer.end.usage.completion_tokens == 3


def test_a_parser_error_fails_the_answer_alone():
    answer = Reader().read('<tool_call>\n{"name": "f", "arguments": {"a": nonsense')
    assert isinstance(answer.end, Failed)
    assert answer.end.error.code == "invalid_model_output"
    assert answer.processor.finished


def test_without_parallel_calls_the_answer_ends_where_a_second_call_begins():
    answer = Reader(max_calls=1).read(f"{CALL}\n{SECOND}\n{SECOND}")
    assert answer.reason == "tool_calls"
    assert answer.calls(ToolCallStart) == answer.calls(ToolCallEnd) == [0]


def test_parallel_calls_have_their_own_index_and_id():
    answer = Reader().read(f"{CALL}\n{CALL}")
    assert answer.calls(ToolCallStart) == answer.calls(ToolCallEnd) == [0, 1]
    assert len({event.id for event in answer.events if isinstance(event, ToolCallStart)}) == 2


@VOCABULARIES
def test_hidden_calls_leave_no_trace_in_events_or_reason(tokenizer):
    answer = Reader(tokenizer, tools="hide").read("Hm. " + CALL)
    assert (answer.text.strip(), answer.reason) == ("Hm.", "stop")
    assert answer.calls(ToolCallStart) == []


def test_control_tokens_are_never_shown_and_other_special_tokens_are_text():
    control = TOKENS.special_tokens["<|im_start|>"]
    answer = Reader(tools="ignore", silent_ids=frozenset((control,))).read("a<|im_start|>b<tool_call>c")
    assert answer.text == "ab<tool_call>c"


@VOCABULARIES
def test_a_character_of_several_tokens_is_told_whole_wherever_it_stands(tokenizer):
    call = '<tool_call>\n{"name": "f", "arguments": {"a": "🔥"}}\n</tool_call>'
    answer = Reader(tokenizer, thinking="optional").read(f"<think>\n🔥\n</think>\n\n🔥{call}")
    kinds = (ReasoningDelta, TextDelta, ToolCallArguments)
    told = [event.text for event in answer.events if isinstance(event, kinds)]
    assert not any("\ufffd" in text for text in told)
    assert (answer.joined(ReasoningDelta).strip(), answer.text.strip()) == ("🔥", "🔥")
    assert json.loads(answer.joined(ToolCallArguments)) == {"a": "🔥"}


def test_a_character_cut_by_the_end_becomes_one_replacement():
    answer = Reader().read([ord("a"), 0xF0, 0x9F], "length")
    assert answer.text == "a\ufffd"


def test_usage_repeats_the_engines_prompt_counts():
    answer = Reader()
    answer.push(b"ab", num_cached_tokens=4)
    answer.push(finish_reason="abort", num_prompt_tokens=0)
    assert (answer.end.usage.prompt_tokens, answer.end.usage.cached_tokens) == (5, 4)
    assert answer.end.usage.total_tokens == 7


ANSWERS = [
    f"Hm. {CALL}",
    f"<think>\nwhy ST\n</think>\n\nbecause STOP no {CALL}",
    f"{CALL}\n{SECOND}",
    "Hello <tool_ca",
    "plain STOP text",
]


@VOCABULARIES
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_grouping_of_tokens_into_outputs_gives_the_same_answer(tokenizer, data):
    text = data.draw(st.sampled_from(ANSWERS))
    finish = data.draw(st.sampled_from(["stop", "length"]))
    stop = data.draw(st.sampled_from([(), ("STOP",), ("ca", "\n\n")]))
    ids = tokenizer.encode(text)

    def read(block: int) -> tuple[object, ...]:
        answer = Reader(tokenizer, thinking="optional", stop=stop).read(ids, finish, block)
        return (
            answer.text,
            answer.joined(ReasoningDelta),
            answer.joined(ToolCallArguments),
            answer.calls(ToolCallEnd),
            type(answer.end),
            getattr(answer.end, "reason", ""),
            answer.end.usage,
        )

    assert read(data.draw(st.integers(2, 40))) == read(1)
