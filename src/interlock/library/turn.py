"""One turn of a conversation: what to feed to a model, what it may say, and what reads it."""

from __future__ import annotations

from interlock.constraints.state import ConstraintState
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Vocabulary
from interlock.core.tools import ToolContext
from interlock.library.constraint import Constraint
from interlock.library.parser import Parser
from interlock.resolve.resolve import Resolved
from interlock.serving.processor import AnswerReader


class Turn:
    """Made by ``Model.turn``."""

    def __init__(
        self,
        resolved: Resolved,
        constraint: Constraint | None,
        vocabulary: Vocabulary,
        reader: AnswerReader,
    ) -> None:
        self._resolved = resolved
        self._reader = reader
        self.constraint = constraint
        self.vocabulary = vocabulary

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        return self._resolved.engine_request.prompt_ids

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Every id that ends the turn."""
        return self._resolved.engine_request.stop_ids

    @property
    def max_tokens(self) -> int:
        return self._resolved.engine_request.max_tokens

    @property
    def sampling(self) -> SamplingParams:
        return self._resolved.engine_request.sampling

    @property
    def tools(self) -> ToolContext:
        return self._resolved.tools

    @property
    def notes(self) -> tuple[str, ...]:
        """What the caller should know about how the request was read."""
        return self._resolved.notes + (() if self.constraint is None else self.constraint.notes)

    def state(self) -> ConstraintState | None:
        """The start of one sequence; ``None`` where nothing is ever forbidden."""
        if self.constraint is not None:
            return self.constraint.state()
        budget = self._resolved.engine_request.thinking
        return None if budget is None else ConstraintState(None, thinking=budget)

    def parser(self) -> Parser:
        """A reader of one answer."""
        return Parser(self._reader.processor(self._resolved))
