"""The way back: ``EngineOutput`` to ``Event``s. Synchronous, one instance per answer.

token ids -> text and special tokens -> stop strings -> the family's parser -> events.

Rules of the end:

- ``tool_calls`` means at least one call and every call complete. ``length`` means the answer was cut and
  is never overwritten. A stop string counts as a cut where it ends a call, or an answer that is held to a
  format at a place where the constraint is not known to let it end (it is known between tokens).
- Stop strings are searched in the model's text outside reasoning, call syntax included. A special token is
  never part of a match, but a stop string that spells one stops at it.
- Exactly one ``Finished`` or ``Failed``, last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from interlock.core.engine import EngineFailure, EngineOutput, TokenLogprob
from interlock.core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    ParserEvent,
    PromptLogprobs,
    ReasoningDelta,
    TextDelta,
    TokenTraced,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.tokenizer import Vocabulary
from interlock.core.trace import TokenTrace
from interlock.core.usage import Usage
from interlock.errors import CATALOG, InterlockError
from interlock.families.wire.parse import StreamParser
from interlock.serving.detokenizer import Detokenizer, SpecialToken
from interlock.serving.plain_text import PlainText
from interlock.serving.scores import Scores
from interlock.serving.stop_strings import StopStrings


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRules:
    """How one answer is read.

    include_stop: the stop string that ends the answer is shown. min_tokens: no stop string begins before as many
    tokens. bound: the whole answer is held to the constraint, none of it is free text. calls_only: and it is calls,
    so text in it can only be the beginning of a marker that was cut. max_calls: calls to show; where another
    one begins, the answer ends (``None``: no limit). include_reasoning: show reasoning. reasoning_is_text:
    the family's reasoning markers are ordinary text in this vocabulary. silent_ids: special tokens that
    nobody is to see.
    """

    stop: tuple[str, ...] = ()
    include_stop: bool = False
    min_tokens: int = 0
    bound: bool = False
    calls_only: bool = False
    max_calls: int | None = None
    include_reasoning: bool = True
    reasoning_is_text: bool = False
    silent_ids: frozenset[int] = frozenset()


class OutputProcessor:
    """Turns one request's outputs into events. Stop feeding it, and abort, once ``finished``."""

    def __init__(self, rules: OutputRules, vocabulary: Vocabulary, parser: StreamParser | PlainText) -> None:
        self._rules = rules
        self._parser = parser
        self._tokens = vocabulary.tokens
        self._detokenizer = Detokenizer(vocabulary)
        self._stops = StopStrings(rules.stop)
        self._stop_string: str | None = None
        self._scores = Scores(vocabulary)
        # Text that opens or closes reasoning switches the search for stop strings off and on, so there
        # each character must have its effect before the next one is looked at.
        self._one_by_one = rules.reasoning_is_text and bool(rules.stop)
        self._stopped = False
        self._fed = self._passed = 0  # characters into and out of the stop strings; a special token is one
        self._accepting: set[int] = set()  # values of _fed >= _passed where the constraint may end
        self._num_calls = self._num_open_calls = 0
        self._too_many_calls = False
        self._prompt_tokens = self._cached_tokens = 0
        self._completion_tokens = self._reasoning_tokens = 0
        self._events: list[Event] = []
        self.finished = False

    @property
    def usage(self) -> Usage:
        """Counts so far. Reasoning includes its markers."""
        return Usage(
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            cached_tokens=self._cached_tokens,
            reasoning_tokens=self._reasoning_tokens,
        )

    def push(self, output: EngineOutput) -> list[Event]:
        """Events of the next output. Nothing may be pushed after ``finished``."""
        assert not self.finished
        self._events = []
        try:
            self._advance(output)
        except InterlockError as error:
            self._end(Failed(error=error, usage=self.usage))
        self._scores.release(self._events, self._passed, ended=self.finished)
        return self._events

    def fail(self, error: InterlockError) -> Failed:
        """End the answer with an error that did not come from the engine's output."""
        self.finished = True
        return Failed(error=error, usage=self.usage)

    def _advance(self, output: EngineOutput) -> None:
        # An output made where the engine has lost the request (abort, worker death) knows no counts.
        self._prompt_tokens = output.num_prompt_tokens or self._prompt_tokens
        self._cached_tokens = output.num_cached_tokens or self._cached_tokens
        if output.prompt_logprobs:
            self._events.append(PromptLogprobs(tokens=tuple(map(self._scores.scored, output.prompt_logprobs))))
        for at, token_id in enumerate(output.token_ids):
            if output.trace:
                self._events.append(self._traced(output.trace[at]))
            self._push_token(token_id, output.logprobs[at] if output.logprobs else None)
            if self._stopped:
                if at == len(output.token_ids) - 1:
                    self._note_accepting(output)
                return self._finish_at_stop()
            if self._too_many_calls:
                return self._end(self._finished(cut=False))
        self._note_accepting(output)
        if output.finish_reason is not None:
            self._finish(output)
        return None

    def _note_accepting(self, output: EngineOutput) -> None:
        if output.is_accepting and self._detokenizer.is_between_characters:
            self._accepting = {at for at in self._accepting if at >= self._passed} | {self._fed}

    @property
    def _is_searching(self) -> bool:
        """A stop string may begin in the token that is being read."""
        return not self._parser.in_reasoning and self._completion_tokens > self._rules.min_tokens

    def _push_token(self, token_id: int, score: TokenLogprob | None) -> None:
        was_in_reasoning, was_in_call, start = self._parser.in_reasoning, self._parser.in_call, self._fed
        self._completion_tokens += 1
        text, special = self._detokenizer.push(token_id)
        self._push_text(text)
        if special is not None and not self._stopped:
            self._push_special(special)
        in_reasoning = was_in_reasoning or self._parser.in_reasoning
        self._reasoning_tokens += in_reasoning
        in_answer = not (in_reasoning or was_in_call or self._parser.in_call or self._num_calls)
        if score is not None and in_answer and token_id not in self._rules.silent_ids:
            self._scores.add(score, start, self._fed)

    def _traced(self, trace: TokenTrace) -> TokenTraced:
        return TokenTraced(trace=trace, spellings={one: self._tokens[one] for one in trace.ids})

    def _push_text(self, text: str) -> None:
        for piece in text if self._one_by_one else (text,):
            self._fed += len(piece)
            self._pass(self._stops.push(piece) if self._is_searching else piece)
            if self._stops.matched:
                return self._stop_at(self._stops.match)
            if self._parser.in_reasoning:
                self._pass(self._stops.flush())
        return None

    def _stop_at(self, stop_string: str) -> None:
        self._stopped, self._stop_string = True, stop_string
        if self._rules.include_stop:
            self._pass(stop_string)

    def _push_special(self, token: SpecialToken) -> None:
        self._pass(self._stops.flush())
        if token.spelling in self._rules.stop and self._is_searching:
            return self._stop_at(token.spelling)
        self._fed += 1
        self._passed += 1
        if token.token_id not in self._rules.silent_ids:
            self._emit(self._parser.push_token(token.token_id, token.spelling))
        return None

    def _pass(self, text: str) -> None:
        self._passed += len(text)
        if text:
            self._emit(self._parser.push_text(text))

    def _emit(self, events: Iterable[ParserEvent]) -> None:
        for event in events:
            if self._too_many_calls:
                return
            match event:
                case ReasoningDelta() if not self._rules.include_reasoning:
                    continue
                case TextDelta() if self._rules.calls_only or (self._rules.bound and self._num_calls):
                    continue
                case ToolCallStart(index=index):
                    if self._rules.max_calls is not None and index >= self._rules.max_calls:
                        self._too_many_calls = True
                        continue
                    self._num_calls += 1
                    self._num_open_calls += 1
                case ToolCallEnd():
                    self._num_open_calls -= 1
            self._events.append(event)

    def _finish_at_stop(self) -> None:
        cut = self._parser.in_call or (self._rules.bound and self._passed not in self._accepting)
        self._emit(self._parser.finish(cut))
        self._end(self._finished(cut=cut))

    def _finish(self, output: EngineOutput) -> None:
        if output.finish_reason == "error":
            raise _engine_error(output.failure)
        self._push_text(self._detokenizer.finish())
        if self._stopped:
            return self._finish_at_stop()
        self._pass(self._stops.flush())
        cut = output.finish_reason != "stop" or output.is_accepting is False
        self._emit(self._parser.finish(cut))
        if output.finish_reason == "abort":
            return self._end(Finished(reason="abort", usage=self.usage))
        return self._end(self._finished(cut=cut))

    def _finished(self, *, cut: bool) -> Finished:
        reason: FinishReason = "stop"
        if cut or self._num_open_calls:
            reason = "length"
        elif self._num_calls:
            reason = "tool_calls"
        return Finished(reason=reason, usage=self.usage, stop_string=self._stop_string)

    def _end(self, event: Finished | Failed) -> None:
        self._events.append(event)
        self.finished = True


def _engine_error(failure: EngineFailure | None) -> InterlockError:
    if failure is None or failure.code not in CATALOG:
        return InterlockError("internal_error", failure.message if failure else "the engine gave no reason")
    return InterlockError(failure.code, failure.message)
