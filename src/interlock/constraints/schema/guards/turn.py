"""Where the guarded values of a turn are: an outline of the turn, followed token by token.

The outline says less than the grammar, so that a turn may be read in several ways at once; all of them are followed,
and a repetition in any of them counts. No reading that the grammar has is ever lost, so nothing escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.guards.scan import RepetitionError, ScanError, State, feed_some


class LostError(Exception):
    """The turn is none of the outline."""


class Literal(msgspec.Struct, frozen=True, tag=True):
    """Fixed text: bytes in ordinary tokens, and ids of special tokens."""

    parts: tuple[bytes | int, ...]


class Free(msgspec.Struct, frozen=True, tag=True):
    """Any text, up to the first occurrence of what follows."""


class Value(msgspec.Struct, frozen=True, tag=True):
    """A JSON value. plan: what to watch in it, a number in ``GuardedTurn.plans``."""

    plan: int | None = None


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

    def to_json(self) -> str:
        """Text that ``from_json`` reads back: it travels with the lowered grammar."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @staticmethod
    def from_json(text: str) -> GuardedTurn:
        return msgspec.json.decode(text, type=GuardedTurn)

    def start(self) -> Readings:
        """Before the first token."""
        return tuple(_expanded((self.root,)))

    def after_text(self, readings: Readings, data: bytes) -> Readings:
        """After an ordinary token. Raises ``RepetitionError``, ``LostError``."""
        return _kept(found for one in readings for found in self._text(one, data))

    def after_special(self, readings: Readings, token_id: int) -> Readings:
        """After a special token. Raises ``LostError``."""
        return _kept(found for one in readings for found in self._special(one, token_id))

    def _text(self, reading: Reading, data: bytes) -> Iterator[Reading]:
        if not data:
            yield reading
            return
        match reading:
            case InLiteral(parts=(bytes(head), *others), rest=rest):
                size = min(len(head), len(data))
                if head[:size] != data[:size]:
                    return
                left = (head[size:], *others) if size < len(head) else tuple(others)
                yield from self._on(_literal(left, rest), data[size:])
            case InFree():
                yield from self._free(reading, data)
            case InValue():
                yield from self._value(reading, data)
            case InOpaque(rest=rest):
                yield reading
                for start in range(1, len(data) + 1):
                    yield from self._on(_expanded(rest), data[start:])

    def _on(self, readings: Iterable[Reading], data: bytes) -> Iterator[Reading]:
        for one in readings:
            yield from self._text(one, data)

    def _free(self, reading: InFree, data: bytes) -> Iterator[Reading]:
        text = reading.tail + data
        ends = [(found + len(head), rest) for head, rest in reading.exits if (found := text.find(head)) >= 0]
        if not ends:
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
            if state.is_bare:
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

    def _special(self, reading: Reading, token_id: int) -> Iterator[Reading]:
        match reading:
            case InLiteral(parts=(int(head), *others), rest=rest) if head == token_id:
                yield from _literal(tuple(others), rest)
            case InFree(special_exits=exits, tail=tail):
                for text, wanted, rest in exits:
                    if wanted == token_id and tail.endswith(text):
                        yield from _expanded(rest)
            case InValue(state=state, rest=rest) if state.is_bare:
                for one in _expanded(rest):
                    yield from self._special(one, token_id)
            case InOpaque(rest=rest):
                yield reading
                for one in _expanded(rest):
                    yield from self._special(one, token_id)


class InLiteral(msgspec.Struct, frozen=True):
    """parts: what is to come of the literal. rest: what comes behind it."""

    parts: tuple[bytes | int, ...]
    rest: Rest


class InFree(msgspec.Struct, frozen=True):
    """exits: text that ends this one, and what follows; special_exits: text (which may be part of this one, too) and the
    special token behind it. tail: the last bytes, at most ``memory``."""

    exits: tuple[tuple[bytes, Rest], ...]
    special_exits: tuple[tuple[bytes, int, Rest], ...]
    memory: int
    tail: bytes = b""


class InValue(msgspec.Struct, frozen=True):
    node: Value
    rest: Rest
    state: State = State()


class InOpaque(msgspec.Struct, frozen=True):
    rest: Rest


class AtEnd(msgspec.Struct, frozen=True):
    """Nothing more may come."""


Reading = InLiteral | InFree | InValue | InOpaque | AtEnd
Readings = tuple[Reading, ...]
_NO_PLAN = GuardPlan((), frozenset())


def guarded_states(readings: Readings) -> list[State]:
    """Where values stand in which something is watched now."""
    return [one.state for one in readings if isinstance(one, InValue) and one.state.is_guarded]


def _kept(readings: Iterable[Reading]) -> Readings:
    found = tuple(readings)
    if len(found) > 1:
        found = tuple(dict.fromkeys(found))
    if not found:
        raise LostError
    return found


def _literal(parts: tuple[bytes | int, ...], rest: Rest) -> Iterable[Reading]:
    return (InLiteral(parts, rest),) if parts else _expanded(rest)


def _expanded(rest: Rest) -> Iterator[Reading]:
    """The ways to begin ``rest``."""
    if not rest:
        yield AtEnd()
        return
    head, tail = rest[0], rest[1:]
    match head:
        case Literal(parts=parts):
            yield from _literal(parts, tail)
        case Free():
            yield _free(tail)
        case Value():
            yield InValue(head, tail)
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
    exits: list[tuple[bytes, Rest]] = []
    special: list[tuple[bytes, int, Rest]] = []
    for one in _expanded(rest):
        match one:
            case InLiteral(parts=(bytes(head),), rest=behind):
                exits.append((head, behind))
            case InLiteral(parts=(bytes(head), int(token_id), *others), rest=behind):
                special.append((head, token_id, (Literal(tuple(others)), *behind)))
            case InLiteral(parts=(int(token_id), *others), rest=behind):
                special.append((b"", token_id, (Literal(tuple(others)), *behind)))
    known = [*(head for head, _ in exits), *(head for head, _, _ in special)]
    return InFree(tuple(exits), tuple(special), max(map(len, known), default=0))


def may_be_empty(node: Outline) -> bool:
    match node:
        case Literal(parts=parts):
            return not parts
        case Sequence(items=items):
            return all(map(may_be_empty, items))
        case Alternative(items=items):
            return any(map(may_be_empty, items))
        case Repeat(item=item, minimum=minimum):
            return minimum == 0 or may_be_empty(item)
        case _:
            return not isinstance(node, Value)
