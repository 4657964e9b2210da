"""Arrays with ``contains``. For one of them, the parameter of the rules holds the number of matches in its low bits, and
the number of commas in the loop behind the unrolled positions in its high ones; several are an automaton.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.arrays import ArrayShape, Contains
from interlock.constraints.schema.graph import Value, meet
from interlock.constraints.schema.lower import conditions as when
from interlock.constraints.schema.lower.contains_automaton import ContainsAutomaton
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.problems import RefusedError

MAX_COUNTED = 24
MAX_LOOP = (1 << 24) - 2
_COUNT = "[0:6]"
_COMMAS = "[40:64]"

Option = tuple[Value, str, str]  # what the item is, its effect on the parameter, when it is allowed


@dataclass(frozen=True, slots=True)
class ContainsLowering:
    algebra: Algebra
    writer: Writer
    syntax: ArgumentSyntax
    symbol: Callable[[Value], str]

    def lower(self, shape: ArrayShape) -> str:
        """The rule of an inhabited shape with ``contains``. Raises ``RefusedError``."""
        rules = sorted(shape.contains, key=lambda rule: (rule.start, sorted(rule.value), rule.low))
        start = max(rule.start for rule in rules)
        while len(shape.prefix) < start and (shape.high is None or len(shape.prefix) < shape.high):
            shape = replace(shape, prefix=(*shape.prefix, shape.rest))
        if max(shape.low, shape.high or 0) - len(shape.prefix) > MAX_LOOP:
            raise RefusedError(
                f"more than {MAX_LOOP} items beside 'contains'", keyword="maxItems", too_complex=True
            )
        if len(rules) == 1:
            return _Counted(self, shape, rules[0]).write()
        return ContainsAutomaton(self.algebra, self.writer, self.syntax, self.symbol).lower(shape, rules)


class _Stateful(ABC):
    """Items position by position, then a loop."""

    def __init__(self, owner: ContainsLowering, shape: ArrayShape) -> None:
        self.owner = owner
        self.shape = shape
        self.size = len(shape.prefix)
        self.loops = shape.high is None or shape.high > self.size

    @abstractmethod
    def options(self, index: int) -> list[Option]:
        """What the item at ``index`` may be."""

    @abstractmethod
    def enough(self) -> str:
        """When the array may end."""

    def write(self) -> str:
        terminal, syntax = self.owner.writer.terminal, self.owner.syntax
        opening, closing = terminal(syntax.array_open), terminal(syntax.array_close)
        bodies: dict[str, tuple[str, bool]] = {}
        for index in range(self.size + 1 if self.loops else self.size):
            found = [
                (f"{self.owner.symbol(kind)} @t{index}@::{effect}", condition)
                for kind, effect, condition in self.options(index)
                if self.owner.algebra.inhabited(kind)
            ]
            if not found:
                break  # and nothing leads here
            bodies[f"p{index}"] = (when.alternatives(found), True)
            bodies[f"t{index}"] = (self._after(index, closing), True)
        entry = [f"{opening} {closing}"] if self.shape.low == 0 and self.enough_when_empty() else []
        entry += [f"{opening} @p0@::0x0"] if "p0" in bodies else []
        bodies["e"] = (" | ".join(entry), False)
        return self.owner.writer.group(bodies, "e")

    def enough_when_empty(self) -> bool:
        return False

    def _after(self, index: int, closing: str) -> str:
        comma = self.owner.writer.terminal(self.owner.syntax.item_separator)
        shape, last = self.shape, index == self.size
        counts = last and (shape.low > self.size + 1 or shape.high is not None)
        end = [self.enough()]
        if not last and shape.low > index + 1:
            end.append(when.FALSE)
        if last and shape.low > self.size + 1:
            end.append(f"ge({_COMMAS}, {shape.low - self.size - 1})")
        options = [(closing, when.all_of(end))]
        if last or index + 1 < self.size or self.loops:
            following = f"@p{index if last else index + 1}@::{f'incr({_COMMAS})' if counts else '_'}"
            more = [self.can_follow(index if last else index + 1)]
            if last and shape.high is not None:
                more.append(f"lt({_COMMAS}, {shape.high - self.size - 1})")
            options.append((f"{comma} {following}", when.all_of(more)))
        return when.alternatives(options)

    def can_follow(self, index: int) -> str:
        """When some item is possible at ``index``."""
        return when.any_of(
            condition for kind, _, condition in self.options(index) if self.owner.algebra.inhabited(kind)
        )


class _Counted(_Stateful):
    def __init__(self, owner: ContainsLowering, shape: ArrayShape, rule: Contains) -> None:
        super().__init__(owner, shape)
        if rule.low > MAX_COUNTED or (rule.high or 0) > MAX_COUNTED:
            raise RefusedError(f"more than {MAX_COUNTED} counted items", keyword="contains", too_complex=True)
        self.rule = rule

    def options(self, index: int) -> list[Option]:
        value, rule = self.shape.item(index), self.rule
        missed = self._miss_allowed(index)
        if index < rule.start:
            return [(value, "_", missed)]
        more = when.TRUE if rule.high is None else f"lt({_COUNT}, {rule.high})"
        # where items differ, the same item must not count once and not the next time
        miss = value if rule.high is None and not self.shape.unique else meet(value, rule.unlike)
        hit = meet(value, rule.value)
        if hit == value and rule.high is None:
            return [(hit, f"incr({_COUNT})", when.TRUE)]
        return [(hit, f"incr({_COUNT})", more), (miss, "_", missed)]

    def enough(self) -> str:
        return f"ge({_COUNT}, {self.rule.low})" if self.rule.low else when.TRUE

    def enough_when_empty(self) -> bool:
        return self.rule.low == 0

    def _hits(self, index: int) -> bool:
        return index >= self.rule.start and self.owner.algebra.inhabited(
            meet(self.shape.item(index), self.rule.value)
        )

    def _miss_allowed(self, index: int) -> str:
        """Enough positions are left for the matches that are still needed."""
        low, high = self.rule.low, self.shape.high
        later = sum(self._hits(position) for position in range(index + 1, self.size))
        loop_hits = self.loops and self._hits(self.size)
        if loop_hits and high is None:
            return when.TRUE
        if index < self.size:
            room = later + (high - self.size if loop_hits and high is not None else 0)
            return f"ge({_COUNT}, {low - room})" if room < low else when.TRUE
        if not loop_hits or high is None:
            return self.enough()
        return when.any_of(
            when.all_of(
                [
                    f"ge({_COUNT}, {low - left})" if left < low else when.TRUE,
                    f"lt({_COMMAS}, {high - self.size - left})" if high - self.size - left > 0 else when.FALSE,
                ]
            )
            for left in range(low + 1)
        )
