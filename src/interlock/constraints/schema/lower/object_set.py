"""Objects whose keys come in any order, or whose presence is a formula: one parametric rule.

The parameter has a bit for each named key (needed ones first), a bit for each kind of key that must exist,
and a small counter of undeclared keys where their number matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.presence import Term
from interlock.constraints.schema.graph import ANYTHING, Value, meet
from interlock.constraints.schema.lower import conditions as when
from interlock.constraints.schema.lower.guarding import GuardRecorder
from interlock.constraints.schema.lower.object_chain import refuse_many, write_chain
from interlock.constraints.schema.lower.object_choices import ChoiceBits
from interlock.constraints.schema.lower.object_keys import Keys, Pairs
from interlock.constraints.schema.lower.object_room import COUNTER_BITS, MAX_COUNTER, cases, check_count
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.text import lang
from interlock.constraints.schema.text.derive import disjoint, is_empty
from interlock.constraints.schema.text.nodes import Lang

BITS = 64
MAX_OPTIONAL = 1_900
"""Each takes one of the 2,000 places that the engine has for what may follow, and what is around it takes some."""


def write_set(
    keys: Keys,
    writer: Writer,
    syntax: ArgumentSyntax,
    pairs: Pairs,
    options: SchemaOptions,
    algebra: Algebra,
    recorder: GuardRecorder,
) -> str:
    layout = _layout(keys, distinct=options.guards)
    if layout is None:
        return write_chain(keys, writer, syntax, pairs)
    refuse_many(sum(name not in keys.unit.need for name, _ in keys.named), MAX_OPTIONAL)
    return _SetWriter(keys, writer, syntax, pairs, options, algebra, recorder, layout).write()


@dataclass(slots=True)
class _Layout:
    """bits: of names. needed: bits below it belong to needed names. counter: range of the counter of
    undeclared keys, empty if they are not counted."""

    bits: dict[str, int]
    needed: int
    exists: list[int]
    choices: int  # bit of the first
    counter: str
    witnesses: list[int]  # bits beside the names, one for each of ``exists`` where keys are counted

    def of(self, names: Iterable[str]) -> list[int]:
        return [self.bits[name] for name in names]

    @property
    def width(self) -> int:
        """Bits that count as one key each."""
        return len(self.bits) + len(self.witnesses)


def _layout(keys: Keys, *, distinct: bool) -> _Layout | None:
    """Who gets a bit: needed names, names of formulas, then the others. ``None``: the keys must keep their
    declared order, because there are more than 64 bits of things to remember. distinct: a guard holds that no key
    comes twice."""
    in_order = [name for name, _ in keys.named]
    need, counts = keys.unit.need, keys.counts
    involved = {name for group in keys.groups for term in group for name in term.names()}
    involved.update(*(choice.names() for choice in keys.choices))
    first = [name for name in in_order if name in need]
    second = [name for name in in_order if name in involved and name not in need]
    third = [name for name in in_order if name not in need and name not in involved]
    shows = len(keys.exists) if counts and keys.others else 0
    if shows > 1 and not distinct:
        raise RefusedError(
            "a count of keys beside several negated additionalProperties needs a check while generating",
            keyword="minProperties",
        )
    available = (
        BITS - shows - len(keys.exists) - len(keys.choices) - (COUNTER_BITS if counts and keys.others else 0)
    )
    must = first + second + (third if counts else [])
    if len(must) > available:
        if not keys.is_simple:
            raise RefusedError(
                f"more keys to keep track of than a rule can hold in {BITS} bits",
                keyword="required",
                too_complex=True,
            )
        return None
    names = (first + second + third)[:available]
    bits = {name: index for index, name in enumerate(names)}
    used = len(names) + shows
    exists = list(range(used, used + len(keys.exists)))
    choices = used + len(exists)
    free = choices + len(keys.choices)
    counter = f"[{free}:{free + COUNTER_BITS}]" if counts and keys.others else ""
    return _Layout(bits, len(first), exists, choices, counter, list(range(len(names), used)))


@dataclass(slots=True)
class _SetWriter:
    keys: Keys
    writer: Writer
    syntax: ArgumentSyntax
    pairs: Pairs
    options: SchemaOptions
    algebra: Algebra
    recorder: GuardRecorder
    layout: _Layout

    def write(self) -> str:
        terminal = self.writer.terminal
        opening, closing = terminal(self.syntax.object_open), terminal(self.syntax.object_close)
        comma = terminal(self.syntax.item_separator)
        entries = [entry for entry in (*self._named(), *self._others()) if entry[1] != when.FALSE]
        if not entries:
            return self.writer.rule(f"{opening} {closing}") if self._may_be_empty() else ""
        more = when.any_of(when.merged(condition for _, condition in entries))
        bodies = {
            "p": (when.alternatives(entries), True),
            "t": (when.alternatives([(closing, self._end()), (f"{comma} @p@::_", more)]), True),
        }
        empty = f"{opening} {closing} | " if self._may_be_empty() else ""
        bodies["e"] = (f"{empty}{opening} @p@::0x0", False)
        return self.writer.group(bodies, "e")

    # what may come

    def _named(self) -> list[tuple[str, str]]:
        keys = self.keys
        if self.any_order and keys.is_simple:
            return [self._plain(name, value) for name, value in keys.named]
        out = []
        for position, (name, value) in enumerate(self.keys.named):
            bit = self.layout.bits.get(name)
            gate = [f"bit_clear({bit})"] if bit is not None else []
            gate += [self._in_order(position), self._completable(name, position)]
            witnesses = [
                (index, rule.value)
                for index, rule in enumerate(self.keys.exists)
                if lang.both(lang.words([name]), rule.keys) != lang.NONE
            ]
            # in declared order a key also passes over those in front of it
            spent = [index for index, _ in witnesses] if self.any_order else range(len(self.keys.exists))
            own = [] if bit is None else [bit]
            for part, made in self.choices.kinds(name, value):
                chosen = [*own, *self.choices.effect(made)]
                following = self.choices.still_open(position, made)
                for kind, shown in self._witnessed(part, witnesses):
                    plain = [self._not_last_witness(index, position) for index in spent if index not in shown]
                    self.recorder.part(name, kind)
                    effect = when.set_bits([*chosen, *(self.layout.exists[index] for index in shown)])
                    condition = when.all_of([*gate, following, *plain, self._room(name, shown, made)])
                    out.append((f"{self.pairs.named(name, kind)} @t@::{effect}", condition))
        return out

    def _plain(self, name: str, value: Value) -> tuple[str, str]:
        """A key that may come at any time, once."""
        pair, bit = self.pairs.named(name, value), self.layout.bits.get(name)
        if bit is None:
            return f"{pair} @t@::_", when.TRUE
        return f"{pair} @t@::set_bit({bit})", f"bit_clear({bit})"

    def _others(self) -> list[tuple[str, str]]:
        out = []
        for region, rules, kind, shown in self._other_pairs():
            self.recorder.part(None, kind)
            gate = [self._room(None, shown, frozenset())]
            if not self.options.guards:
                # a repeated key has its last value: after a witness, only witnesses may use such keys
                gate += [f"bit_clear({self.layout.exists[i]})" for i in rules if i not in shown]
            pair = self.pairs.of(region, kind)
            out += [
                (f"{pair} @t@::{effect}", when.all_of([*gate, condition]))
                for effect, condition in self._counted([self.layout.exists[i] for i in shown])
            ]
        return out

    def _other_pairs(self) -> Iterator[tuple[Lang, list[int], Value, list[int]]]:
        """Undeclared keys, the rules that ask for such ones, their values, and which of the rules these satisfy."""
        for cell in self.keys.others:
            for region, rules in self._regions(cell.keys):
                for kind, shown in self._witnessed(cell.value, [(i, self.keys.exists[i].value) for i in rules]):
                    yield region, rules, kind, shown

    def _counted(self, shown: list[int]) -> list[tuple[str, str]]:
        """Effects of an undeclared key that shows what the bits ``shown`` ask for. One function cannot set a bit and
        count, so a key that shows something first counts by a bit of its own."""
        if not self.layout.counter:
            return [(when.set_bits(shown), when.TRUE)]
        count = f"incr({self.layout.counter})"
        if not shown:
            return [(count, when.TRUE)]
        own = dict(zip(self.layout.exists, self.layout.witnesses, strict=True))
        bits = [own[bit] for bit in shown]
        out = [
            (when.set_bits([bit, *shown]), when.all_of([when.has_all(bits[:index]), f"bit_clear({bit})"]))
            for index, bit in enumerate(bits)
        ]
        return [*out, (count, when.has_all(bits))]

    def _regions(self, keys: Lang) -> list[tuple[Lang, list[int]]]:
        """``keys`` split by the languages of ``exists``."""
        regions: list[tuple[Lang, list[int]]] = [(keys, [])]
        for index, rule in enumerate(self.keys.exists):
            split = []
            for region, rules in regions:
                inside, outside = lang.both(region, rule.keys), lang.both(region, lang.negate(rule.keys))
                split += [(part, found) for part, found in ((inside, [*rules, index]), (outside, rules))
                          if not is_empty(part)]  # fmt: skip
            regions = split
        return regions

    def _witnessed(self, value: Value, witnesses: list[tuple[int, Value]]) -> list[tuple[Value, list[int]]]:
        """The value, and its parts that show what must exist (single ones, and all together)."""
        always = [index for index, kind in witnesses if meet(value, kind) == value]
        some = [(index, kind) for index, kind in witnesses if index not in always]
        out = [(value, always)]
        for index, kind in some:
            out.append((meet(value, kind), sorted([*always, index])))
        if len(some) > 1:
            together = value
            for _, kind in some:
                together = meet(together, kind)
            out.append((together, sorted([*always, *(index for index, _ in some)])))
        return [(kind, shown) for kind, shown in out if kind == ANYTHING or self.algebra.inhabited(kind)]

    def _not_last_witness(self, index: int, position: int) -> str:
        """Spending a key without showing what must exist leaves another way to show it."""
        rule = self.keys.exists[index]
        if any(
            not disjoint(cell.keys, rule.keys) and self.algebra.inhabited(meet(cell.value, rule.value))
            for cell in self.keys.others
        ):
            return when.TRUE
        ways = [f"bit_set({self.layout.exists[index]})"]
        for place, (other, value) in enumerate(self.keys.named):
            if place == position or (place < position and not self.any_order):
                continue
            if lang.both(lang.words([other]), rule.keys) == lang.NONE:
                continue
            if self.algebra.inhabited(meet(value, rule.value)) and other in self.layout.bits:
                ways.append(f"bit_clear({self.layout.bits[other]})")
        return when.any_of(ways)

    # order

    def _in_order(self, position: int) -> str:
        """In declared order: no later key was written, and no needed one is left out."""
        if self.any_order:
            return when.TRUE
        bits = self.layout.bits
        names = [name for name, _ in self.keys.named]
        later = [bits[name] for name in names[position + 1 :] if name in bits]
        earlier = [bits[name] for name in names[:position] if name in self.keys.unit.need]
        return when.all_of([when.has_none(later), when.has_all(earlier), self._enough_left(position)])

    def _enough_left(self, position: int) -> str:
        """The keys behind ``position`` can still make up the number that is asked for."""
        low = self.keys.unit.low
        if low <= len(self.keys.unit.need) or (self.keys.others and self.options.guards):
            return when.TRUE
        missing = low - (len(self.keys.named) - position) - bool(self.keys.others)
        return f"bit_count_ge([0:{self.layout.width}], {missing})" if missing > 0 else when.TRUE

    @property
    def any_order(self) -> bool:
        return self.options.property_order == "any"

    @property
    def choices(self) -> ChoiceBits:
        return ChoiceBits(self.keys, self.layout.bits, self.layout.choices, self.any_order, self.algebra)

    # formulas

    def _completable(self, name: str, position: int) -> str:
        """With ``name`` written, every group can still be satisfied."""
        passed = set() if self.any_order else {other for other, _ in self.keys.named[:position]}
        parts = []
        for group in self.keys.groups:
            if any(name in term.forbid or term.need & passed for term in group):
                left = [term for term in group if name not in term.forbid]
                parts.append(
                    when.any_of(
                        when.all_of(
                            [
                                when.has_none(self.layout.of(term.forbid)),
                                when.has_all(self.layout.of(term.need & passed)),
                            ]
                        )
                        for term in left
                    )
                )
        return when.all_of(parts)

    def _end(self) -> str:
        parts = [when.has_all(range(self.layout.needed))]
        parts += [when.any_of(self._term(term) for term in group) for group in self.keys.groups]
        parts += [f"bit_set({bit})" for bit in self.layout.exists]
        parts.append(self.choices.end())
        if self.keys.counts and self.keys.unit.low > len(self.keys.unit.need):
            parts.append(self._at_least(self.keys.unit.low))
        return when.all_of(parts)

    def _term(self, term: Term) -> str:
        return when.all_of(
            [when.has_all(self.layout.of(term.need)), when.has_none(self.layout.of(term.forbid))]
        )

    def _may_be_empty(self) -> bool:
        unit = self.keys.unit
        if unit.need or unit.low or self.keys.exists or not self.choices.made_by_nothing():
            return False
        return all(any(not term.need for term in group) for group in self.keys.groups)

    # counts

    def _at_least(self, low: int) -> str:
        """Named keys and undeclared ones together. A repeated undeclared key is one key, so without a guard only the
        first of them counts."""
        named, width = f"[0:{self.layout.width}]", self.layout.width
        if not self.layout.counter:
            return f"bit_count_ge({named}, {low})"
        others = low if self.options.guards else int(not self.layout.witnesses)
        if min(low, width) + others < low:
            raise RefusedError(
                "undeclared keys may repeat, so only a check while generating could count them",
                keyword="minProperties",
            )
        check_count(low, min(low, width), "minProperties")
        return when.any_of(
            when.all_of(
                [
                    f"ge({self.layout.counter}, {count})" if count else when.TRUE,
                    f"bit_count_ge({named}, {low - count})" if low > count else when.TRUE,
                ]
            )
            for count in range(max(0, low - width), others + 1)
        )

    def _room(self, name: str | None, shown: list[int], made: frozenset[int]) -> str:
        """A key leaves room for the needed ones, and for keys that show what must still be shown."""
        unit = self.keys.unit
        if unit.high is None or not self.keys.counts:
            return when.TRUE
        own = 0 if name is not None and name in unit.need else 1
        num_exists = len(self.keys.exists)
        owed = [(index, self._shown_anyway(index, name)) for index in range(num_exists) if index not in shown]
        owed += enumerate(self.choices.settled(name, made), num_exists)
        owed = [(index, condition) for index, condition in owed if condition != when.TRUE]
        together = {frozenset(found) for *_, found in self._other_pairs()} if len(owed) > 1 else set()
        return when.any_of(
            when.all_of([self._space(own + missing), *settled]) for missing, settled in cases(owed, together)
        )

    def _shown_anyway(self, index: int, name: str | None) -> str:
        """What must exist is there, or a needed key that is still to come can show it."""
        rule, need = self.keys.exists[index], self.keys.unit.need
        ways = [f"bit_set({self.layout.exists[index]})"]
        for other, value in self.keys.named:
            if other in need and other != name and lang.both(lang.words([other]), rule.keys) != lang.NONE:
                able = self.algebra.inhabited(meet(value, rule.value))
                ways += [f"bit_clear({self.layout.bits[other]})"] if able else []
        return when.any_of(ways)

    def _space(self, amount: int) -> str:
        """So many keys that are not needed still fit."""
        if not amount:
            return when.TRUE
        unit = self.keys.unit
        assert unit.high is not None
        free = unit.high - len(unit.need) - amount + 1
        optional = self.layout.width - self.layout.needed
        named = f"[{self.layout.needed}:{self.layout.width}]"
        if free <= 0:
            return when.FALSE
        if not self.layout.counter:
            return f"bit_count_lt({named}, {free})"
        if not optional and free <= MAX_COUNTER:
            return f"lt({self.layout.counter}, {free})"
        check_count(free, optional, "maxProperties")
        return when.any_of(
            when.all_of([f"lt({self.layout.counter}, {free - count})", f"bit_count_lt({named}, {count + 1})"])
            for count in range(min(free, optional + 1))
        )
