"""Turns, constraints and parsers of a model, without a server."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import BaseModel

from interlock import Constraint, InterlockError, Model, TextParser
from interlock.config import SchemaLimits
from interlock.constraints import bitmask
from interlock.constraints.state import ConstraintState
from interlock.core.events import Finished, TextDelta
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

USER = [{"role": "user", "content": "Weather?"}]


class City(BaseModel):
    city: str


def weather(city: str) -> None:
    """Weather in a city."""


def accepts(constraint: Constraint, model: Model, text: str) -> bool:
    """Whether the constraint takes the text and may end behind it."""
    matcher = constraint.matcher()
    row = np.zeros(bitmask.num_words(model.tokenizer.vocabulary.size), np.int32)
    for token_id in model.tokenizer.encode(text):
        matcher.fill(row)
        if not bitmask.is_allowed(row, token_id):
            return False
        matcher.accept(token_id)
    return matcher.is_accepting


def test_constraints_of_every_kind_hold(model: Model):
    cases = [
        (model.json_schema(City), '{"city": "Rome"}', '{"city": 1}'),
        (model.json_schema(City, open_objects=True), '{"city": "Rome", "x": 1}', '{"x": 1}'),
        (model.regex(r"[0-9]{2}"), "12", "123"),
        (model.grammar('start: "yes" | "no"'), "no", "maybe"),
        (model.grammar('root ::= "a" [b-c]', "gbnf"), "ab", "ad"),
        (model.choice(["red", "reddish"]), "reddish", "blue"),
    ]
    for constraint, good, bad in cases:
        assert accepts(constraint, model, good)
        assert not accepts(constraint, model, bad)


def test_what_cannot_be_enforced_is_refused(model: Model):
    with pytest.raises(InterlockError) as refused:
        model.json_schema({"type": "string", "contentMediaType": 3, "pattern": "(?<=a)b("})
    assert refused.value.code == "invalid_schema"
    assert refused.value.problems


BYTES = ModelDescription(
    tokenizer=byte_tokenizer(("<|im_end|>",)),
    architecture="qwen3",
    name="bytes",
    chat_template="",
    context_tokens=4096,
    bos_token="",
    eos_token="<|im_end|>",
)


def test_a_model_has_its_own_limits_of_schemas() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert accepts(Model(BYTES, family="qwen3").json_schema(schema), Model(BYTES, family="qwen3"), "{}")
    with pytest.raises(InterlockError, match="more than 1 steps"):
        Model(BYTES, family="qwen3", schema_limits=SchemaLimits(max_work=1)).json_schema(schema)


def test_references_lead_to_documents_that_were_given() -> None:
    uri = "http://example.com/zip"
    model = Model(BYTES, family="qwen3", documents={uri: '{"type": "integer"}'})
    constraint = model.json_schema({"$ref": uri})
    assert accepts(constraint, model, "5")
    assert not accepts(constraint, model, '"5"')
    with pytest.raises(InterlockError, match="was not given"):
        model.json_schema({"$ref": "http://example.com/other"})


def test_guards_are_part_of_the_matcher(model: Model):
    constraint = model.json_schema({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
    assert accepts(constraint, model, '["ab", "ac"]')
    assert not accepts(constraint, model, '["ab", "ab"]')


def test_a_turn_asks_for_what_a_request_asks(model: Model):
    turn = model.turn(USER, tools=[weather], tool_choice="required", max_tokens=100)
    assert model.tokenizer.decode(turn.prompt_ids).startswith("<|im_start|>user\nWeather?<|im_end|>")
    assert turn.max_tokens == 100
    assert turn.tools.call_required
    assert turn.constraint is not None
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    assert accepts(turn.constraint, model, call)
    assert not accepts(turn.constraint, model, "It is sunny.")


def test_a_turn_with_a_type_as_its_format(model: Model):
    turn = model.turn(USER, response_format=City)
    assert turn.constraint is not None
    assert accepts(turn.constraint, model, '{"city": "Rome"}')


def test_a_free_turn_forbids_nothing(model: Model):
    turn = model.turn(USER)
    assert turn.constraint is None
    assert turn.state() is None


def test_a_thinking_budget_is_part_of_the_state(model: Model):
    turn = model.turn(USER, response_format=City, thinking_budget=2)
    state = turn.state()
    assert isinstance(state, ConstraintState)
    for token_id in model.tokenizer.encode("<think>ab"):
        state.accept(token_id)
    assert state.forced_id() == model.tokenizer.special_tokens["</think>"]


@pytest.mark.parametrize(
    ("request_", "code", "param"),
    [
        ({"tools": [weather, weather]}, "invalid_tools", "tools[1].function.name"),
        ({"nonsense": 1, "n": "x"}, "invalid_value", "n"),
        ({"functions": [{"name": "f"}]}, "unsupported_parameter", "functions"),
    ],
)
def test_a_turn_is_refused_as_the_server_would(model: Model, request_: dict, code: str, param: str):
    with pytest.raises(InterlockError) as refused:
        model.turn(USER, **request_)
    assert (refused.value.code, refused.value.param) == (code, param)


def test_a_parser_reads_tokens_as_they_come(model: Model):
    turn = model.turn(USER, tools=[weather])
    parser = turn.parser()
    said = '<think>hm</think>Let me see.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    events = [event for token_id in model.tokenizer.encode(said) for event in parser.push([token_id])]
    assert any(isinstance(event, TextDelta) for event in events)
    assert isinstance(parser.finish()[-1], Finished)
    assert (parser.answer.reasoning, parser.answer.text) == ("hm", "Let me see.")
    assert [(call.name, call.arguments_text) for call in parser.answer.calls] == [
        ("weather", '{"city": "Rome"}')
    ]
    assert parser.finish_reason == "tool_calls"
    assert parser.push([65]) == [] == parser.finish()


def test_a_parser_stops_at_a_stop_string(model: Model):
    parser = model.turn(USER, stop=["END"]).parser()
    parser.push(model.tokenizer.encode("one END two"))
    assert parser.finished
    assert (parser.answer.text, parser.finish_reason) == ("one ", "stop")


def test_a_text_parser_needs_no_tokenizer():
    parser = TextParser("llama3", tools=[weather])
    text = '{"name": "weather", "parameters": {"city": "Rome"}}'
    for char in text:
        parser.push(char)
    parser.finish()
    assert json.loads(parser.answer.calls[0].arguments_text) == {"city": "Rome"}
