"""Refusals: what cannot be enforced, with keyword, pointer and reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from interlock.config import SchemaLimits, raised_by
from interlock.errors import Problem


class RefusedError(Exception):
    """One schema keyword cannot be turned into a grammar. ``too_complex``: only its size is the trouble."""

    def __init__(self, reason: str, *, keyword: str = "", pointer: str = "", too_complex: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keyword = keyword
        self.pointer = pointer
        self.too_complex = too_complex

    def at(self, keyword: str, pointer: str) -> RefusedError:
        """The same refusal, placed where it has no place yet."""
        if self.pointer:
            return self
        return RefusedError(
            self.reason, keyword=self.keyword or keyword, pointer=pointer, too_complex=self.too_complex
        )

    def problem(self) -> Problem:
        return Problem(reason=self.reason, keyword=self.keyword, pointer=self.pointer)


@dataclass(slots=True)
class Budget:
    """Bounds the work on one schema: every step of the algebra spends from it."""

    limit: int
    spent: int = 0

    def spend(self, amount: int = 1) -> None:
        self.spent += amount
        if self.spent > self.limit:
            raise RefusedError(
                f"the schema is too complex: its normal form takes more than {self.limit} steps"
                f" ({raised_by(SchemaLimits, 'max_work')})",
                too_complex=True,
            )


@dataclass(slots=True)
class Problems:
    """All problems found so far, each once, in order."""

    found: list[Problem] = field(default_factory=list)

    def add(self, reason: str, *, keyword: str = "", pointer: str = "") -> None:
        problem = Problem(reason=reason, keyword=keyword, pointer=pointer)
        if problem not in self.found:
            self.found.append(problem)

    def add_refused(self, refused: RefusedError) -> None:
        self.add(refused.reason, keyword=refused.keyword, pointer=refused.pointer)
