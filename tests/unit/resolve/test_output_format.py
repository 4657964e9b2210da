from __future__ import annotations

import pytest

from interlock.core.output_format import (
    ChoiceFormat,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    RegexFormat,
    StructuralTagFormat,
    TextFormat,
)
from interlock.errors import InterlockError
from interlock.resolve.output_format import resolve_output_format


@pytest.mark.parametrize(
    "output_format",
    [
        TextFormat(),
        JsonObjectFormat(),
        JsonSchemaFormat(schema="{}"),
        RegexFormat(pattern=" "),
        GrammarFormat(source='start: "a"', dialect="lark"),
        ChoiceFormat(choices=("a", " ")),
    ],
)
def test_what_may_make_sense_passes(output_format):
    assert resolve_output_format(output_format) == output_format


def test_a_repeated_choice_counts_once_at_its_first_place():
    assert resolve_output_format(ChoiceFormat(choices=("b", "a", "b"))) == ChoiceFormat(choices=("b", "a"))


@pytest.mark.parametrize(
    ("output_format", "code", "param"),
    [
        (JsonSchemaFormat(schema=""), "invalid_schema", "response_format.json_schema.schema"),
        (RegexFormat(pattern=""), "invalid_regex", "structured_outputs.regex"),
        (GrammarFormat(source=" \n", dialect="gbnf"), "invalid_grammar", "structured_outputs.grammar"),
        (ChoiceFormat(choices=()), "invalid_value", "structured_outputs.choice"),
        (ChoiceFormat(choices=("a", "")), "invalid_value", "structured_outputs.choice[1]"),
        (RegexFormat(pattern="\udc00"), "invalid_regex", "structured_outputs.regex"),
    ],
)
def test_what_cannot_make_sense_is_refused(output_format, code, param):
    with pytest.raises(InterlockError) as caught:
        resolve_output_format(output_format)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_a_token_that_ends_the_turn_is_no_part_of_a_structural_tag() -> None:
    tag = '{"format": {"type": "const_string", "value": "a<|im_end|>"}}'
    found = StructuralTagFormat(tag=tag)
    assert resolve_output_format(found, ("<|other|>",)) == found
    with pytest.raises(InterlockError, match="ends a turn"):
        resolve_output_format(found, ("<|im_end|>",))
