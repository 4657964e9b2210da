"""Arrays with several ``contains``: a rule for each number of items, and of matches of each kind, that can be told apart.

States from which the array cannot be completed have no rule, so that nothing leads into a dead end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.arrays import ArrayShape, Contains
from interlock.constraints.schema.graph import Value, meet_all
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.problems import RefusedError

MAX_KINDS = 8
MAX_STATES = 300
MAX_STEPS = 2000

State = tuple[int, tuple[int, ...]]  # items so far, and matches of each rule; no higher than it matters


@dataclass(slots=True)
class ContainsAutomaton:
    algebra: Algebra
    writer: Writer
    syntax: ArgumentSyntax
    symbol: Callable[[Value], str]
    _steps: dict[State, list[tuple[Value, State]]] = field(default_factory=dict)

    def lower(self, shape: ArrayShape, rules: list[Contains]) -> str:
        """The rule of an inhabited shape. Raises ``RefusedError``."""
        if len(rules) > MAX_KINDS:
            raise _too_many()
        start: State = (0, (0,) * len(rules))
        self._explore(shape, rules, start)
        complete = {state for state in self._steps if _is_complete(shape, rules, state)}
        alive = self._alive(complete)
        if start not in alive:
            raise RefusedError("no items are of all these kinds at once", keyword="contains")
        return self._write(start, complete, alive)

    def _explore(self, shape: ArrayShape, rules: list[Contains], start: State) -> None:
        pending, num_steps = [start], 0
        while pending:
            state = pending.pop()
            if state in self._steps:
                continue
            steps = [step for step in _steps(shape, rules, state) if self.algebra.inhabited(step[0])]
            self._steps[state] = steps
            num_steps += len(steps)
            if num_steps > MAX_STEPS or len(self._steps) > MAX_STATES:
                raise _too_many()
            pending += [following for _, following in steps]

    def _alive(self, complete: set[State]) -> set[State]:
        alive, grows = set(complete), True
        while grows:
            found = {
                state
                for state, steps in self._steps.items()
                if any(following in alive for _, following in steps)
            }
            grows = not found <= alive
            alive |= found
        return alive

    def _write(self, start: State, complete: set[State], alive: set[State]) -> str:
        terminal = self.writer.terminal
        opening, closing = terminal(self.syntax.array_open), terminal(self.syntax.array_close)
        comma = terminal(self.syntax.item_separator)
        names = {state: f"s{number}" for number, state in enumerate(sorted(alive))}

        def ways(state: State, before: str) -> list[str]:
            found = [f"{before} {closing}"] if state in complete else []
            joint = comma if before == "" else before
            steps = [(kind, following) for kind, following in self._steps[state] if following in alive]
            return found + [f"{joint} {self.symbol(kind)} @{names[following]}@" for kind, following in steps]

        bodies = {name: (" | ".join(ways(state, "")), False) for state, name in names.items()}
        bodies["e"] = (" | ".join(ways(start, opening)), False)
        reached = {following for steps in self._steps.values() for _, following in steps}
        if start not in reached:
            del bodies[names[start]]
        return self.writer.group(bodies, "e")


def _too_many() -> RefusedError:
    return RefusedError(
        f"several 'contains' need more than {MAX_KINDS} counts, {MAX_STATES} states or {MAX_STEPS} steps",
        keyword="contains",
        too_complex=True,
    )


def _is_complete(shape: ArrayShape, rules: list[Contains], state: State) -> bool:
    size, counts = state
    return size >= shape.low and all(count >= rule.low for count, rule in zip(counts, rules, strict=True))


def _steps(shape: ArrayShape, rules: list[Contains], state: State) -> Iterator[tuple[Value, State]]:
    """What the next item may be, and where that leads. A kind without an upper bound is not told apart once there is
    enough of it."""
    size, counts = state
    if shape.high is not None and size >= shape.high:
        return
    counted = [
        index
        for index, rule in enumerate(rules)
        if size >= rule.start and (rule.high is not None or counts[index] < rule.low)
    ]
    most = max(shape.low, len(shape.prefix)) if shape.high is None else shape.high
    for hits in itertools.product((False, True), repeat=len(counted)):
        kinds, after = [shape.item(size)], list(counts)
        for index, hit in zip(counted, hits, strict=True):
            after[index] += hit
            if hit:
                kinds.append(rules[index].value)
            elif rules[index].high is not None or shape.unique:  # the same item must not count just once
                kinds.append(rules[index].unlike)
        bounded = zip(after, rules, strict=True)
        if all(rule.high is None or count <= rule.high for count, rule in bounded):
            yield meet_all(kinds), (min(size + 1, most), tuple(after))
