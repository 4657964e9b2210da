"""Python's keyword arguments to rules: the outermost object is written unlike the ones inside it."""

from __future__ import annotations

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.lower.objects import ObjectLowering
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.values import ValueLowering
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Problems


class KeywordLowering(ValueLowering):
    def __init__(
        self,
        algebra: Algebra,
        writer: Writer,
        inner: ArgumentSyntax,
        options: SchemaOptions,
        problems: Problems,
        outer: ArgumentSyntax,
    ) -> None:
        super().__init__(algebra, writer, inner, options, problems)
        self._outermost = ObjectLowering(algebra, writer, outer, options, self.symbol, self.recorder)
