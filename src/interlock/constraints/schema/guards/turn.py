"""Where the guarded values of a turn are: an outline of the turn, followed token by token.

The outline says less than the grammar, so that a turn may be read in several ways at once; all of them are followed,
and a repetition in any of them counts. No reading that the grammar has is ever lost, so nothing escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import force_setattr, replace

from interlock.constraints.schema.guards.marks import first_special, is_text
from interlock.constraints.schema.guards.notation import JSON, Notation
from interlock.constraints.schema.guards.plan import EVERY_KEY_ONCE, GuardPlan
from interlock.constraints.schema.guards.reading import feed_some, start
from interlock.constraints.schema.guards.scan import RepetitionError, ScanError, State


class LostError(Exception):
    """The turn is none of the outline."""


class Literal(msgspec.Struct, frozen=True, tag=True):
    """Fixed text; special tokens in it are spelt as ``marks.special_text`` does."""

    text: bytes


class Free(msgspec.Struct, frozen=True, tag=True):
    """Any text, up to the first occurrence of what follows."""


class Value(msgspec.Struct, frozen=True, tag=True):
    """A JSON value. plan: what to watch in it, a number in ``GuardedTurn.plans``. notation: how it is written."""

    plan: int | None = None
    notation: Notation = JSON


class Opaque(msgspec.Struct, frozen=True, tag=True):
    """Anything, of any length."""


class Sequence(msgspec.Struct, frozen=True, tag=True):
    items: tuple[Outline, ...]


class Alternative(msgspec.Struct, frozen=True, tag=True):
    items: tuple[Outline, ...]


class Repeat(msgspec.Struct, frozen=True, tag=True):
    """maximum: ``None`` for any number."""

    item: Outline
    minimum: int
    maximum: int | None
    separator: Outline | None


Outline = Literal | Free | Value | Opaque | Sequence | Alternative | Repeat
Rest = tuple[Outline, ...]


class GuardedTurn(msgspec.Struct, frozen=True):
    """The outline of a turn, and the plans of its values."""

    root: Outline
    plans: tuple[GuardPlan, ...]

    def __post_init__(self) -> None:
        """The plan that most have is one object."""
        plans = tuple(EVERY_KEY_ONCE if plan == EVERY_KEY_ONCE else plan for plan in self.plans)
        force_setattr(self, "plans", plans)

    def to_json(self) -> str:
        """Text that ``from_json`` reads back: it travels with the lowered grammar."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @staticmethod
    def from_json(text: str) -> GuardedTurn:
        return msgspec.json.decode(text, type=GuardedTurn)

    def notations(self) -> set[Notation]:
        """How the guarded values are written."""
        return {node.notation for node in _walk(self.root) if isinstance(node, Value) and node.plan is not None}

    def start(self) -> Readings:
        """Before the first token."""
        return tuple(_expanded((self.root,)))

    def after(self, readings: Readings, data: bytes) -> Readings:
        """After a token; a special one is spelt as ``marks.special_text`` does. Raises ``RepetitionError``, ``LostError``.
        The same object where nothing has changed."""
        if len(readings) == 1 and isinstance(one := readings[0], InValue):
            following = self._inside(one, data)
            if following is not None:
                return readings if following is one else (following,)
        return _kept(found for one in readings for found in self._text(one, data))

    def _inside(self, reading: InValue, data: bytes) -> InValue | None:
        """``reading`` behind ``data`` that is all of its value, in no other way; else ``None``."""
        state = reading.state
        if not data or state.may_end:
            return None
        plan = _NO_PLAN if reading.node.plan is None else self.plans[reading.node.plan]
        try:
            following, taken = feed_some(plan, state, data)
        except RepetitionError:
            raise
        except ScanError:
            raise LostError from None
        if taken < len(data) or following.mode == "end":
            return None
        return reading if following is state else InValue(reading.node, reading.rest, following)

    def _text(self, reading: Reading, data: bytes) -> Iterator[Reading]:
        if not data:
            yield reading
            return
        match reading:
            case InLiteral(text=text, rest=rest):
                size = min(len(text), len(data))
                if text[:size] == data[:size]:
                    yield from self._on(_literal(text[size:], rest), data[size:])
            case InFree():
                yield from self._free(reading, data)
            case InValue():
                yield from self._value(reading, data)
            case InOpaque(rest=rest):
                yield reading
                for start in range(1 if is_text(data) else len(data), len(data) + 1):
                    yield from self._on(_expanded(rest), data[start:])

    def _on(self, readings: Iterable[Reading], data: bytes) -> Iterator[Reading]:
        for one in readings:
            yield from self._text(one, data)

    def _free(self, reading: InFree, data: bytes) -> Iterator[Reading]:
        text = reading.tail + data
        ends = [(found + len(head), rest) for head, rest in reading.exits if (found := text.find(head)) >= 0]
        if not ends:
            if is_text(data):  # no special token is part of a text
                yield replace(reading, tail=text[max(0, len(text) - reading.memory) :])
            return
        end = min(at for at, _ in ends)
        for at, rest in ends:
            if at == end:
                yield from self._on(_expanded(rest), text[end:])

    def _value(self, reading: InValue, data: bytes) -> Iterator[Reading]:
        plan = _NO_PLAN if reading.node.plan is None else self.plans[reading.node.plan]
        state = reading.state
        while data:
            if state.may_end:
                yield from self._on(_expanded(reading.rest), data)
            try:
                state, taken = feed_some(plan, state, data)
            except RepetitionError:
                raise
            except ScanError:
                return
            data = data[taken:]
            if state.mode == "end":
                yield from self._on(_expanded(reading.rest), data)
                return
        yield replace(reading, state=state)


class InLiteral(msgspec.Struct, frozen=True):
    """text: what is to come of the literal. rest: what comes behind it."""

    text: bytes
    rest: Rest


class InFree(msgspec.Struct, frozen=True):
    """exits: text that ends this one, and what follows. tail: the last bytes, at most ``memory``."""

    exits: tuple[tuple[bytes, Rest], ...]
    memory: int
    tail: bytes = b""


class InValue(msgspec.Struct, frozen=True):
    node: Value
    rest: Rest
    state: State


class InOpaque(msgspec.Struct, frozen=True):
    rest: Rest


class AtEnd(msgspec.Struct, frozen=True):
    """Nothing more may come."""


Reading = InLiteral | InFree | InValue | InOpaque | AtEnd
Readings = tuple[Reading, ...]
_NO_PLAN = GuardPlan((), frozenset())


def guarded_states(readings: Readings) -> list[State]:
    """Where values stand in which something is watched now."""
    if len(readings) == 1:
        one = readings[0]
        return [one.state] if isinstance(one, InValue) and one.state.is_guarded else []
    return [one.state for one in readings if isinstance(one, InValue) and one.state.is_guarded]


def _kept(readings: Iterable[Reading]) -> Readings:
    found = tuple(readings)
    if len(found) > 1:
        found = tuple(dict.fromkeys(found))
    if not found:
        raise LostError
    return found


def _literal(text: bytes, rest: Rest) -> Iterable[Reading]:
    return (InLiteral(text, rest),) if text else _expanded(rest)


def _expanded(rest: Rest) -> Iterator[Reading]:
    """The ways to begin ``rest``."""
    if not rest:
        yield AtEnd()
        return
    head, tail = rest[0], rest[1:]
    match head:
        case Literal(text=text):
            yield from _literal(text, tail)
        case Free():
            yield _free(tail)
        case Value():
            yield InValue(head, tail, start(head.notation))
        case Opaque():
            yield InOpaque(tail)
            yield from _expanded(tail)
        case Sequence(items=items):
            yield from _expanded((*items, *tail))
        case Alternative(items=items):
            for item in items:
                yield from _expanded((item, *tail))
        case Repeat():
            for option in _unrolled(head):
                yield from _expanded((*option, *tail))


def _unrolled(node: Repeat) -> Iterator[Rest]:
    if node.maximum != 0:
        most = None if node.maximum is None else node.maximum - 1
        separated = node.item if node.separator is None else Sequence((node.separator, node.item))
        yield (node.item, Repeat(separated, max(node.minimum - 1, 0), most, None))
    if node.minimum == 0:
        yield ()


def _free(rest: Rest) -> InFree:
    """A special token ends the text, whatever comes behind that token."""
    exits: list[tuple[bytes, Rest]] = []
    for one in _expanded(rest):
        if isinstance(one, InLiteral):
            head, behind = first_special(one.text)
            exits.append((head, (Literal(behind), *one.rest) if behind else one.rest))
    return InFree(tuple(exits), max((len(head) for head, _ in exits), default=0))


def _walk(node: Outline) -> Iterator[Outline]:
    yield node
    match node:
        case Sequence(items=items) | Alternative(items=items):
            for item in items:
                yield from _walk(item)
        case Repeat(item=item):
            yield from _walk(item)


def may_be_empty(node: Outline) -> bool:
    match node:
        case Literal(text=text):
            return not text
        case Sequence(items=items):
            return all(map(may_be_empty, items))
        case Alternative(items=items):
            return any(map(may_be_empty, items))
        case Repeat(item=item, minimum=minimum):
            return minimum == 0 or may_be_empty(item)
        case _:
            return not isinstance(node, Value)
