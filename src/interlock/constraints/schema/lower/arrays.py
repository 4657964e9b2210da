"""Array shapes to rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.arrays import ArrayShape
from interlock.constraints.schema.algebra.finite import Finite, Member, json_text
from interlock.constraints.schema.graph import NEVER, Value
from interlock.constraints.schema.guards.plan import Slots
from interlock.constraints.schema.lower import conditions as when
from interlock.constraints.schema.lower.contains import ContainsLowering
from interlock.constraints.schema.lower.guarding import GuardRecorder
from interlock.constraints.schema.lower.plenty import array_places
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.numbers.text import UnwritableError, spell
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.text import lang

MAX_DISTINCT = 60
MAX_REPEATABLE = 30
_AGAIN = 62  # the bit of a value that came again
_COMMAS = "[40:60]"
_MAX_COUNTED = 1 << 19


class ArrayLowering:
    def __init__(
        self,
        algebra: Algebra,
        writer: Writer,
        syntax: ArgumentSyntax,
        options: SchemaOptions,
        symbol: Callable[[Value], str],
        recorder: GuardRecorder,
        *,
        has_tagged_items: bool = False,
    ) -> None:
        """has_tagged_items: ``symbol`` writes a tag around an item."""
        self._algebra = algebra
        self._writer = writer
        self._options = options
        self._symbol = symbol
        self._syntax = syntax
        self._contains = ContainsLowering(algebra, writer, syntax, symbol)
        self._recorder = recorder
        self._has_tagged_items = has_tagged_items

    def lower(self, shapes: list[ArrayShape], *, alone: bool = True) -> list[str]:
        """Rules of the inhabited shapes of one value. Where the items of one must differ and only a guard holds that, those
        of all do: it cannot tell them apart. alone: no other value may stand here. Raises ``RefusedError``."""
        writable = [shape for shape in shapes if self._is_writable(shape)]
        shapes = writable if writable or not alone else shapes
        if len(shapes) > 1 and any(
            shape.unique and self._listed(self._trimmed(shape)) is None for shape in shapes
        ):
            alike = [replace(shape, unique=True) for shape in shapes if not shape.repeats]
            shapes = [shape for shape in alike if self._algebra.array_inhabited(shape)]
        return [self._lower(shape) for shape in shapes]

    def _lower(self, shape: ArrayShape) -> str:
        shape = self._trimmed(shape)
        if shape.repeats:
            return self._repeating(shape)
        unique = shape.unique and (shape.high is None or shape.high > 1)
        domain = self._listed(shape) if unique else None
        if domain is not None:
            self._recorder.array(shape, unique=False)
            return self._distinct(shape, domain)
        if unique and not self._options.guards:
            raise RefusedError(
                "items are not a small finite set of scalars, so only a check while generating could hold this",
                keyword="uniqueItems",
            )
        self._record(shape, unique=unique)
        if shape.contains:
            return self._contains.lower(shape)
        return self._writer.rule(self._plain(shape))

    def _is_writable(self, shape: ArrayShape) -> bool:
        """Not so where two items must be equal and could be anything: such arrays are left out if there are others."""
        return not shape.repeats or self._repeatable(self._trimmed(shape)) is not None

    def _repeatable(self, shape: ArrayShape) -> list[Member] | None:
        if shape.prefix or shape.contains or shape.unique or max(shape.low, shape.high or 0) > _MAX_COUNTED:
            return None
        return self._algebra.finite_items(shape, MAX_REPEATABLE)

    def _listed(self, shape: ArrayShape) -> list[Member] | None:
        """The values that items can have, where rules with a bit for each hold that they differ."""
        if shape.contains or self._has_tagged_items or (shape.prefix and shape.low > 1):
            return None
        return self._algebra.finite_items(shape, MAX_DISTINCT)

    def _record(self, shape: ArrayShape, *, unique: bool) -> None:
        """Tell the guard of an array."""
        places = partial(array_places, shape, self._algebra)
        if not unique:
            self._recorder.array(shape, unique=False, places=places)
            return
        finite = Finite(self._algebra, closed=not self._options.open_objects)
        try:
            slots, inexact = self._slots(finite, shape), finite.may_run_out(shape)
        except UnwritableError:
            slots, inexact = (), True
        self._recorder.array(shape, unique=True, places=places, slots=slots, inexact=inexact)

    def _slots(self, finite: Finite, shape: ArrayShape) -> Slots:
        """What a guard must know of positions that have few values. Raises ``UnwritableError``."""
        found = finite.slots(shape)
        if found is None:
            raise RefusedError(
                "fewer different items can be written than minItems or minContains asks for; with open_objects there may be more",
                keyword="minItems",
            )
        return tuple((index, tuple(map(json_text, sorted(listed, key=repr)))) for index, listed in found)

    def _trimmed(self, shape: ArrayShape) -> ArrayShape:
        """Positions that nothing can fill end the array."""
        for index, value in enumerate(shape.prefix):
            if not self._algebra.inhabited(value):
                return replace(shape, prefix=shape.prefix[:index], rest=NEVER, high=index)
        if shape.rest != NEVER and not self._algebra.inhabited(shape.rest):
            shape = replace(shape, rest=NEVER)
        if shape.rest == NEVER:
            top = len(shape.prefix)
            shape = replace(shape, high=top if shape.high is None else min(shape.high, top))
        return shape

    def _marks(self) -> tuple[str, str, str]:
        terminal, syntax = self._writer.terminal, self._syntax
        return terminal(syntax.array_open), terminal(syntax.array_close), terminal(syntax.item_separator)

    def _plain(self, shape: ArrayShape) -> str:
        opening, closing, comma = self._marks()
        options = [f"{opening} {closing}"] if shape.low == 0 else []
        if shape.high != 0:
            options.append(f"{opening} {self._items(shape, closing, comma)}")
        return " | ".join(options)

    def _items(self, shape: ArrayShape, closing: str, comma: str) -> str:
        """At least one item and the end, as the body of a rule; written from the last position backwards."""
        size = len(shape.prefix)
        tail = closing
        if shape.high is None or shape.high > size:
            low = max(shape.low - max(size, 1), 0)
            high = None if shape.high is None else shape.high - max(size, 1)
            item = self._symbol(shape.rest)
            tail = f"{_repeat(f'{comma} {item}', low, high)} {closing}".lstrip()
            if size == 0:
                return f"{item} {tail}"
        for index in range(size - 1, 0, -1):
            item = self._symbol(shape.prefix[index])
            tail = f"{comma} {item} {tail}"
            if shape.low <= index:
                tail = self._writer.rule(f"{closing} | {tail}")
        return f"{self._symbol(shape.prefix[0])} {tail}"

    # uniqueItems

    def _distinct(self, shape: ArrayShape, domain: list[Member]) -> str:
        """A bit for each value that was used."""
        opening, closing, comma = self._marks()
        high = len(domain) if shape.high is None else min(shape.high, len(domain))
        size = min(len(shape.prefix), high)
        bits = {member: bit for bit, member in enumerate(domain)}
        everything = f"[0:{len(domain)}]"
        bodies: dict[str, tuple[str, bool]] = {}
        for index in range(size + 1):
            last = index == size
            allowed = (
                self._algebra.finite(shape.item(index), MAX_DISTINCT)
                if self._algebra.inhabited(shape.item(index))
                else []
            )
            allowed = [member for member in allowed or [] if member in bits]  # others only stand where none may
            found = [
                (f"{self._member(member)} @t{index}@::set_bit({bits[member]})", f"bit_clear({bits[member]})")
                for member in allowed
            ]
            if not found:
                break
            bodies[f"p{index}"] = (when.alternatives(found), True)
            end = f"bit_count_ge({everything}, {shape.low})" if shape.low > 1 else when.TRUE
            following = shape.item(index if last else index + 1)
            free = (
                [bits[m] for m in (self._algebra.finite(following, MAX_DISTINCT) or []) if m in bits]
                if self._algebra.inhabited(following)
                else []
            )
            more = [
                when.any_of(f"bit_clear({bit})" for bit in free)
                if len(free) < len(domain)
                else f"ne({everything}, {(1 << len(domain)) - 1})"
            ]
            if high < len(domain):
                more.append(f"bit_count_lt({everything}, {high})")
            step = (f"{comma} @p{index if last else index + 1}@::_", when.all_of(more) if free else when.FALSE)
            bodies[f"t{index}"] = (when.alternatives([(closing, end), step]), True)
        entry = [f"{opening} {closing}"] if shape.low == 0 else []
        if "p0" in bodies and high:
            entry.append(f"{opening} @p0@::0x0")
        bodies["e"] = (" | ".join(entry), False)
        return self._writer.group(bodies, "e")

    def _repeating(self, shape: ArrayShape) -> str:
        """A bit for each value that was used, and one for the first that comes again."""
        domain = self._repeatable(shape)
        if domain is None:
            raise RefusedError(
                "its negation needs items that are a small finite set of scalars, without prefixItems and contains",
                keyword="uniqueItems",
            )
        opening, closing, comma = self._marks()
        not_last = when.TRUE if shape.high is None else f"lt({_COMMAS}, {shape.high - 1})"
        items = []
        for bit, member in enumerate(domain):
            name = self._member(member)
            items.append((f"{name} @t@::{when.set_bits([bit])}", when.any_of([f"bit_set({_AGAIN})", not_last])))
            items.append((f"{name} @t@::{when.set_bits([_AGAIN])}", f"bit_set({bit})"))
        enough = f"ge({_COMMAS}, {shape.low - 1})" if shape.low > 2 else when.TRUE
        counted = f"incr({_COMMAS})" if shape.high is not None or shape.low > 2 else "_"
        after = [
            (closing, when.all_of([f"bit_set({_AGAIN})", enough])),
            (f"{comma} @p@::{counted}", not_last),
        ]
        bodies = {"p": (when.alternatives(items), True), "t": (when.alternatives(after), True)}
        return self._writer.group({**bodies, "e": (f"{opening} @p@::0x0", False)}, "e")

    def _member(self, member: Member) -> str:
        kind, value = member
        terminal, syntax = self._writer.terminal, self._syntax
        if kind == "null":
            return terminal(syntax.null)
        if kind == "boolean":
            return terminal(syntax.true if value else syntax.false)
        if kind == "number":
            return terminal(f'"{spell(value)}"')
        return terminal(syntax.string(lang.words([value])))


def _repeat(symbols: str, low: int, high: int | None) -> str:
    if high == 0:
        return ""
    if high is None:
        return f"({symbols})*" if low == 0 else f"({symbols})+" if low == 1 else f"({symbols}){{{low},}}"
    return f"({symbols}){{{low},{high}}}"
