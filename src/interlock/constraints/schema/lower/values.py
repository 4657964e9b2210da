"""Values to rules: one rule for each conjunction, scalars as terminals."""

from __future__ import annotations

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.scalars import Scalars
from interlock.constraints.schema.graph import Value
from interlock.constraints.schema.lower.arrays import ArrayLowering
from interlock.constraints.schema.lower.guarding import GuardRecorder
from interlock.constraints.schema.lower.objects import ObjectLowering
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.numbers import text as number_text
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Problems, RefusedError
from interlock.constraints.schema.text import lang
from interlock.constraints.schema.text.derive import is_empty


class ValueLowering:
    """Names of rules for values. A refusal inside one value is noted, and the others are still looked at."""

    def __init__(
        self,
        algebra: Algebra,
        writer: Writer,
        syntax: ArgumentSyntax,
        options: SchemaOptions,
        problems: Problems,
    ) -> None:
        self.algebra = algebra
        self.writer = writer
        self.syntax = syntax
        self.problems = problems
        self._known: dict[Value, str] = {}
        self._pending: list[Value] = []
        self.recorder = GuardRecorder()
        self._objects = ObjectLowering(algebra, writer, syntax, options, self.symbol, self.recorder)
        self._outermost = self._objects  # differs where arguments are written unlike the objects in them
        self._arrays = ArrayLowering(algebra, writer, syntax, options, self.symbol, self.recorder)

    def lower(self, value: Value) -> str:
        """The start rule for ``value``; everything below it is written too."""
        start = self.symbol(value) if self._outermost is self._objects else self._outermost_object(value)
        while self._pending:
            self._define(self._pending.pop())
        return start

    def _outermost_object(self, value: Value) -> str:
        shapes = self.algebra.objects(value)
        self.recorder.current = value
        return self.writer.rule(" | ".join(self._outermost.lower(shapes)))

    def symbol(self, value: Value) -> str:
        """The rule or terminal of ``value``, which must be inhabited."""
        name = self._known.get(value)
        if name is None:
            single = self._single_terminal(value)
            if single is not None:
                self._known[value] = single
                return single
            name = self._known[value] = self.writer.reserve()
            self._pending.append(value)
        return name

    def _single_terminal(self, value: Value) -> str | None:
        """Most values are one scalar: they need no rule."""
        try:
            if not self.algebra.has_only_scalars(value) and (
                self.algebra.arrays(value) or self.algebra.objects(value)
            ):
                return None
            found = self._scalars(self.algebra.scalars(value))
        except RefusedError:
            return None  # met again, and noted, when the rule is written
        return found[0] if len(found) == 1 else None

    def _define(self, value: Value) -> None:
        self.recorder.current = value
        try:
            options = self._alternatives(value)
        except RefusedError as refused:
            self.problems.add_refused(self._placed(refused, value))
            self.writer.define(self._known[value], '"null"')  # never used: there is a problem
            return
        if not options:
            self.problems.add("no value is possible here", pointer=self._pointer(value))
        self.writer.define(self._known[value], " | ".join(options) or '"null"')

    def _pointer(self, value: Value) -> str:
        return self.algebra.graph.schema(min(value, key=abs)).pointer if value else ""

    def _placed(self, refused: RefusedError, value: Value) -> RefusedError:
        """The refusal with the place of its keyword, as near as it can be told."""
        pending = [self.algebra.graph.schema(literal) for literal in sorted(value, key=abs)]
        if not pending:
            return refused
        first, seen = pending[0], set(pending)
        while pending:
            schema = pending.pop(0)
            if refused.keyword and schema.has(refused.keyword):
                return refused.at("", f"{schema.pointer}/{refused.keyword}")
            for part in self.algebra.graph.in_place(schema):
                if part not in seen:
                    seen.add(part)
                    pending.append(part)
        return refused.at("", first.pointer)

    def _alternatives(self, value: Value) -> list[str]:
        out = self._scalars(self.algebra.scalars(value))
        out += self._objects.lower(self.algebra.objects(value))
        out += self._arrays.lower(self.algebra.arrays(value), alone=not out)
        return list(dict.fromkeys(out))

    def _scalars(self, scalars: Scalars) -> list[str]:
        out = []
        if scalars.null:
            out.append(self.writer.terminal(self.syntax.null))
        if True in scalars.bools:
            out.append(self.writer.terminal(self.syntax.true))
        if False in scalars.bools:
            out.append(self.writer.terminal(self.syntax.false))
        if scalars.numbers:
            out.append(self._numbers(scalars))
        if not _no_strings(scalars):
            out += [
                self.writer.terminal(self.syntax.string(part)) for part in lang.alternatives(scalars.strings)
            ]
        return out

    def _numbers(self, scalars: Scalars) -> str:
        try:
            return self.writer.terminal(
                number_text.terminal(scalars.numbers, self.writer.terminal, integers_only=scalars.integer_only)
            )
        except number_text.UnwritableError as error:
            native = number_text.native(scalars.numbers)
            if native is None:
                raise RefusedError(str(error), keyword="multipleOf") from None
            return self.writer.rule(native)


def _no_strings(scalars: Scalars) -> bool:
    return scalars.strings is lang.NONE or (not scalars.strings.plain and is_empty(scalars.strings))
