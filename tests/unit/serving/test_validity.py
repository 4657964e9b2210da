"""An answer to relaxed schemas is validated at its end, before the last event is given out."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.core.constraint import Sequence as Row
from interlock.core.events import TextDelta, ToolCallArguments, ToolCallStart, Validity
from interlock.core.output_format import JsonSchemaFormat
from interlock.core.request import JsonPolicy
from interlock.errors import InterlockError
from interlock.serving.validity import RelaxedAnswer, relaxed_schemas

RELAXED = JsonPolicy(schema_mode="relaxed")
FORMAT = JsonSchemaFormat(schema='{"type": "string"}')


def test_only_relaxed_values_are_validated() -> None:
    answer, tool = JsonValue("1", relaxed=True), JsonValue("2", relaxed=True, tool="t")
    assert relaxed_schemas(ConstraintSpec(root=Row((answer, tool, JsonValue("3"))))) == {None: "1", "t": "2"}
    assert relaxed_schemas(None) == {}


async def test_each_call_is_told_apart() -> None:
    asked: list[tuple[str, str]] = []

    async def validate(pairs: Sequence[tuple[str, str]]) -> tuple[bool | None, ...]:
        asked.extend(pairs)
        return (True, False)

    answer = RelaxedAnswer({None: "A", "t": "T"}, validate)
    for index, pieces in enumerate((("{", "}"), ("{}",))):
        answer.add(ToolCallStart(index=index, id=str(index), name="t"))
        for piece in pieces:
            answer.add(ToolCallArguments(index=index, text=piece))
    assert await answer.validity() == Validity(calls=(True, False))
    assert asked == [("T", "{}"), ("T", "{}")]


async def test_nobody_can_tell_where_the_validator_is_gone() -> None:
    async def validate(pairs: Sequence[tuple[str, str]]) -> tuple[bool | None, ...]:
        raise InterlockError("shutting_down", "no")

    answer = RelaxedAnswer({None: "A"}, validate)
    answer.add(TextDelta(text='"x"'))
    assert (await answer.validity()).valid is None


async def test_a_relaxed_answer_ends_with_what_the_validator_says(world) -> None:
    made = await world('"ab"')
    events = await made.answer(output_format=FORMAT, json_policy=RELAXED)
    assert made.pool.validated == [(FORMAT.schema, '"ab"')]
    assert events[-1].validity == Validity(answer=(True,))


async def test_an_exact_answer_is_not_validated_again(world) -> None:
    made = await world('"ab"')
    events = await made.answer(output_format=FORMAT)
    assert made.pool.validated == []
    assert events[-1].validity is None
