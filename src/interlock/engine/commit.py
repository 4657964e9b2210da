"""Chosen and forced tokens -> what changes in their sequence, and whether the sequence ends."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace

import msgspec

from interlock.constraints.providers.base import MatcherError
from interlock.core.engine import EngineFailure, EngineFinishReason, TokenLogprob
from interlock.core.trace import TokenTrace
from interlock.engine.committed import Committed
from interlock.engine.sequence import Sequence
from interlock.errors import CATALOG
from interlock.sampling.base import Choice

MAX_FORCED_TOKENS = 64
"""Forced in one step; what is left follows in the next one, so that a long text stops nobody for long."""


@dataclass(slots=True)
class Progress:
    """What one step does to a sequence, token by token. failure: what ended it after those tokens.

    num_tokens: of all parts. num_accepted: tokens of the draft that were chosen and committed. is_tainted: logits were unusable, and what made
    them may be in the cache. is_undecided: what comes next depends on a search that runs beside the step.
    """

    parts: list[Committed] = field(default_factory=list)
    failure: EngineFailure | None = None
    num_tokens: int = 0
    num_accepted: int = 0
    num_forced: int = 0
    is_tainted: bool = False
    is_undecided: bool = False

    @property
    def is_over(self) -> bool:
        """The sequence has ended."""
        return self.failure is not None or (bool(self.parts) and self.parts[-1].finish_reason is not None)


def commit_choices(
    sequence: Sequence, draft: Seq[int], choices: Seq[Choice], model_stop_ids: frozenset[int]
) -> Progress:
    """Commit the choices in order, each one behind a draft token only if the one before is that token. Nothing is
    committed behind an end or a failure: what a step does is what one step for each token would have done. A choice that
    cannot be decided yet stays with ``sequence``, and comes before any other."""
    progress = Progress()
    if sequence.undecided is not None:
        draft, choices, sequence.undecided = (), (sequence.undecided,), None
    if sequence.fault is not None:
        progress.failure, progress.is_tainted = sequence.fault, True
        return progress
    if sequence.constraint is not None and sequence.constraint.error is not None:
        progress.failure = EngineFailure(code="matcher_failed", message=sequence.constraint.error)
        return progress
    for index, choice in enumerate(choices):
        if choice.error is not None:
            progress.failure = EngineFailure(code=choice.error, message=CATALOG[choice.error].meaning)
            progress.is_tainted = True
            break
        is_draft = index < len(draft) and choice.token_id == draft[index]
        trace = _traced(choice, is_draft)
        if _is_held_up(progress, sequence, choice.token_id, model_stop_ids):
            if progress.is_undecided:
                sequence.undecided = msgspec.structs.replace(choice, trace=trace)
            break
        _add(progress, sequence, choice.token_id, model_stop_ids, choice.logprob, trace)
        if progress.is_over or not is_draft:
            break
        progress.num_accepted += 1
    return progress


def commit_forced(sequence: Sequence, progress: Progress, model_stop_ids: frozenset[int]) -> None:
    """Commit what the constraint leaves no choice about. Nothing where log probabilities or a trace are asked, which
    need logits (the prompt's come with the first token), and nothing that the request forbids: a pass finds out then that nothing is left."""
    constraint, request = sequence.constraint, sequence.request
    sampling = request.sampling
    if constraint is None or request.trace or sequence.undecided is not None:
        return
    if sampling.logprobs is not None or sampling.prompt_logprobs is not None:
        return
    while not (progress.is_over or progress.is_undecided) and progress.num_forced < MAX_FORCED_TOKENS:
        try:
            token_id = constraint.forced_token()
        except MatcherError as error:
            progress.failure = EngineFailure(code="matcher_failed", message=str(error))
            return
        if token_id is None or _is_forbidden(sequence, token_id):
            return
        if _is_held_up(progress, sequence, token_id, model_stop_ids):
            continue
        _add(progress, sequence, token_id, model_stop_ids)
        progress.num_forced += 1


def _is_held_up(progress: Progress, sequence: Sequence, token_id: int, model_stop_ids: frozenset[int]) -> bool:
    """Whether ``sequence`` does not go on with ``token_id`` now: its budget makes it end in another way, or that is still
    searched. What the request forbids closes nothing."""
    constraint = sequence.constraint
    if constraint is None or _ends(sequence, token_id, model_stop_ids):
        return False
    try:
        is_refused = constraint.refuses(token_id)
    except MatcherError as error:
        progress.failure = EngineFailure(code="matcher_failed", message=str(error))
        return True
    if not is_refused:
        progress.is_undecided = is_refused is None
        return progress.is_undecided
    ending = constraint.ending_ids
    is_permitted = _is_permitted(sequence, ending)
    constraint.close_output(by_ending=is_permitted)
    if is_permitted and not ending:
        progress.parts.append(Committed((), "length", True))
    return is_permitted


def _is_permitted(sequence: Sequence, token_ids: Seq[int]) -> bool:
    limiter = sequence.limiter
    if limiter is None:
        return True
    tail = sequence.output_tail(limiter.tail_length)
    return all(limiter.allows(one, (*tail, *token_ids[:index])) for index, one in enumerate(token_ids))


def _is_forbidden(sequence: Sequence, token_id: int) -> bool:
    limiter = sequence.limiter
    return limiter is not None and not limiter.allows(token_id, sequence.output_tail(limiter.tail_length))


def released(sequence: Sequence, progress: Progress) -> list[Committed]:
    """What the request is told after ``progress``: all that guards may not take back any more, and everything at a regular end."""
    parts = sequence.held + progress.parts
    num_held = 0 if sequence.constraint is None else min(sequence.constraint.num_held, len(parts))
    if progress.is_over:
        num_held = 0 if progress.failure is None else num_held
    size = len(parts) - num_held
    sequence.held = parts[size:]
    return parts[:size]


def merged(parts: Seq[Committed]) -> Committed:
    """Several commits as one."""
    if len(parts) == 1:
        return parts[0]
    return Committed(
        token_ids=tuple(token_id for part in parts for token_id in part.token_ids),
        finish_reason=parts[-1].finish_reason,
        is_accepting=parts[-1].is_accepting,
        logprobs=tuple(logprob for part in parts for logprob in part.logprobs),
        trace=tuple(trace for part in parts for trace in part.trace),
    )


def _traced(choice: Choice, is_draft: bool) -> TokenTrace | None:
    if choice.trace is None or not is_draft:
        return choice.trace
    return replace(choice.trace, source="draft")


def _add(
    progress: Progress,
    sequence: Sequence,
    token_id: int,
    model_stop_ids: frozenset[int],
    logprob: TokenLogprob | None = None,
    trace: TokenTrace | None = None,
) -> None:
    try:
        committed = _commit(sequence, token_id, model_stop_ids, logprob)
        if trace is not None and committed.token_ids:
            committed = msgspec.structs.replace(committed, trace=(trace,))
        progress.parts.append(committed)
        progress.num_tokens += len(committed.token_ids)
    except MatcherError as error:
        progress.failure = EngineFailure(code="matcher_failed", message=str(error))


def _commit(
    sequence: Sequence, token_id: int, model_stop_ids: frozenset[int], logprob: TokenLogprob | None
) -> Committed:
    """Advance ``sequence`` by ``token_id``. Raises ``MatcherError``, and then nothing is committed.

    Precedence: a stop id where an end is allowed, then the end that the length made necessary, then the end of the
    grammar, then the length.
    """
    if _ends(sequence, token_id, model_stop_ids):
        return Committed((), "stop", None if sequence.request.constraint is None else True)
    if sequence.constraint is not None:
        sequence.constraint.accept(token_id)
    sequence.append(token_id)
    finish_reason = _finish_reason(sequence)
    return Committed(
        (token_id,),
        finish_reason,
        _is_accepting(sequence, finish_reason),
        () if logprob is None else (logprob,),
    )


def _ends(sequence: Sequence, token_id: int, model_stop_ids: frozenset[int]) -> bool:
    """A stop id ends a free sequence at once, a constrained one where its grammar may end. A grammar lets
    the model's own stop ids through nowhere else, so there they count whether or not the request names them."""
    if sequence.request.constraint is None:
        return token_id in sequence.request.stop_ids
    if token_id not in sequence.request.stop_ids and token_id not in model_stop_ids:
        return False
    return sequence.constraint is not None and sequence.constraint.is_accepting


def _finish_reason(sequence: Sequence) -> EngineFinishReason | None:
    if sequence.constraint is not None and sequence.constraint.is_closed:
        return "length"
    if sequence.constraint is not None and sequence.constraint.is_terminated:
        return "stop"
    return "length" if sequence.num_output_tokens >= sequence.max_output_tokens else None


def _is_accepting(sequence: Sequence, finish_reason: EngineFinishReason | None) -> bool | None:
    if sequence.request.constraint is None or sequence.constraint is None:
        return None
    if finish_reason is None and not sequence.request.report_accepting:
        return None
    return sequence.constraint.is_accepting
