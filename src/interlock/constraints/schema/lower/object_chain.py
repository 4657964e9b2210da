"""Objects in declared order: every key has its place, undeclared ones come last."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from interlock.constraints.schema.lower.object_keys import Keys, Pairs
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.problems import RefusedError

MAX_RUN = 980
"""Optional keys in a row: behind a key each of those that may follow takes two of the 2,000 places that the engine has."""


def write_chain(keys: Keys, writer: Writer, syntax: ArgumentSyntax, pairs: Pairs) -> str:
    opening, closing = writer.terminal(syntax.object_open), writer.terminal(syntax.object_close)
    comma = writer.terminal(syntax.item_separator)
    extra = " | ".join(pairs.of(cell.keys, cell.value) for cell in keys.others)
    if "|" in extra:
        extra = writer.rule(extra)
    named = [(pairs.named(name, value), name in keys.unit.need) for name, value in keys.named]
    refuse_many(_longest_run(required for _, required in named), MAX_RUN)

    tails = [closing if not extra else f"({comma} {extra})* {closing}"]  # from the last position backwards
    for pair, required in reversed(named):
        tail = f"{comma} {pair} {tails[-1]}"
        tails.append(tail if required else writer.rule(f"{tail} | {_named(tails[-1], writer)}"))
    tails.reverse()

    starts = []
    for index, (pair, required) in enumerate(named):
        starts.append(f"{opening} {pair} {tails[index + 1]}")
        if required:
            break
    else:
        if extra:
            starts.append(f"{opening} {extra} {tails[-1]}")
        starts.append(f"{opening} {closing}")
    return writer.rule(" | ".join(starts))


def _longest_run(are_required: Iterable[bool]) -> int:
    return max((sum(1 for _ in run) for required, run in groupby(are_required) if not required), default=0)


def refuse_many(num_optional: int, most: int) -> None:
    """Raises ``RefusedError`` for more optional keys than the grammar engine can have before it."""
    if num_optional > most:
        raise RefusedError(
            f"an object has {num_optional} optional keys of which any may come next; the grammar engine follows at most {most}: "
            "require some of them, or move some into objects of their own",
            keyword="properties",
            too_complex=True,
        )


def _named(tail: str, writer: Writer) -> str:
    return tail if " " not in tail else writer.rule(tail)
