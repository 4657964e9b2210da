"""What a guard must know of a spec to find the values it watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interlock.constraints.schema.guards import turn
from interlock.constraints.schema.guards.notation import notation
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.core.constraint import (
    Alternative,
    Choice,
    FreeText,
    Grammar,
    JsonValue,
    Marker,
    Node,
    Regex,
    Repeat,
    Sequence,
    Text,
)

Spell = Callable[[Text | Marker], bytes]
"""A text, its special tokens spelt as ``marks.special_text`` does."""


def outline(root: Node, plans: Mapping[JsonValue, GuardPlan], spell: Spell) -> turn.GuardedTurn:
    """plans: of the values in the spec that need one."""
    numbers = {value: number for number, value in enumerate(plans)}

    def of(node: Node) -> turn.Outline:
        match node:
            case Text() | Marker():
                return turn.Literal(spell(node))
            case FreeText():
                return turn.Free()
            case JsonValue(syntax="json"):
                return turn.Value(numbers.get(node))
            case JsonValue() if node in numbers:
                return turn.Value(numbers[node], notation(node.syntax, lambda text: spell(Marker(text))))
            case Choice(options=options):
                return turn.Alternative(tuple(turn.Literal(spell(Text(option))) for option in options))
            case Regex() | Grammar() | JsonValue():
                return turn.Opaque()
            case Sequence(items=items):
                return turn.Sequence(tuple(map(of, items)))
            case Alternative(items=items):
                return turn.Alternative(tuple(map(of, items)))
            case Repeat(item=item, minimum=low, maximum=high, separator=separator):
                inner, between = of(item), None if separator is None else of(separator)
                if turn.may_be_empty(inner):
                    return turn.Opaque()  # what repeats nothing has no end
                return turn.Repeat(inner, low, high, between)

    return turn.GuardedTurn(of(root), tuple(plans.values()))
