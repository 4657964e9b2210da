"""The engine step: requests in, tokens out. Runs on one thread of the host; no sockets, no tensors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, wait

from interlock import log
from interlock.config import EngineConfig
from interlock.constraints.compiler import GrammarCompiler
from interlock.core.engine import EngineFailure, EngineOutput, EngineRequest, EngineStats
from interlock.core.tokenizer import Vocabulary
from interlock.engine.admission import check_request
from interlock.engine.backtracking import has_gone_back
from interlock.engine.commit import Progress, commit_choices, commit_forced, merged, released
from interlock.engine.committed import Committed
from interlock.engine.drafting.speculator import Speculator
from interlock.engine.execution import Block, Execution
from interlock.engine.forced_room import within_room
from interlock.engine.kv_cache_manager import KVCacheManager
from interlock.engine.outbox import Outbox
from interlock.engine.preparation import Preparation
from interlock.engine.prompt_cache import PromptCache
from interlock.engine.quarantine import Quarantine
from interlock.engine.request_meter import RequestMeter
from interlock.engine.resume import resumed_constraint
from interlock.engine.scheduler import Chunk, Scheduler
from interlock.engine.sequence import Sequence, SequenceStatus
from interlock.engine.step_stats import StepStats
from interlock.errors import InterlockError
from interlock.runners.base import ForwardError, ModelRunner

_log = log.get(__name__)

_MOST_RENEWALS = 2
"""Times that a sequence may use up what matchers of its grammar share; then it ends."""

_MAX_WAIT_S = 0.005
"""For a search, where there is nothing else to do; messages are looked at in between."""


class EngineCore:
    """Everything a worker does between two messages.

    speculator: what guesses at tokens to come; nobody does without it.
    wake: called, from any thread, when there is work for ``step`` that a sequence has waited for.
    clock: monotonic seconds.
    """

    def __init__(
        self,
        runner: ModelRunner,
        compiler: GrammarCompiler,
        vocabulary: Vocabulary,
        config: EngineConfig,
        *,
        speculator: Speculator | None = None,
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner = runner
        self._compiler = compiler
        self._vocabulary = vocabulary
        self._model_stop_ids = frozenset(vocabulary.stop_ids)
        self._config = config
        context_tokens = runner.info.context_tokens
        self._context_tokens = min(context_tokens, config.max_kv_tokens or context_tokens)
        self._clock = clock
        self._speculator = speculator
        self._sequences: dict[str, Sequence] = {}
        self._preparation = Preparation(compiler, wake)
        self._outputs = Outbox(clock)
        self._next_deadline = math.inf
        self._num_arrivals = 0
        self._stats = StepStats()
        self._saved = PromptCache(config.prompt_cache_bytes)
        self._execution = Execution(
            runner,
            vocabulary.size,
            self._stats,
            max_draft_tokens=0 if speculator is None else speculator.max_tokens,
            mask_threads=config.mask_threads,
        )
        self._start_afresh()

    @property
    def has_work(self) -> bool:
        """``step`` would do something now."""
        return bool(self._outputs or self._preparation) or self._scheduler.has_work

    @property
    def is_empty(self) -> bool:
        """No request is unfinished and no output undelivered."""
        return not (self._sequences or self._outputs)

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and output of one request."""
        return self._context_tokens

    @property
    def next_deadline(self) -> float:
        """No request times out before this moment of the clock."""
        return self._next_deadline

    def submit(self, request: EngineRequest) -> None:
        """Take a request. Raises ``InterlockError``: ``overloaded``, ``context_length_exceeded``,
        ``invalid_value``."""
        if request.request_id in self._sequences:
            raise InterlockError("invalid_value", f"request id {request.request_id!r} is in use")
        check_request(request, context_tokens=self._context_tokens, vocab_size=self._vocabulary.size)
        sequence = self._new_sequence(request)
        self._scheduler.add(sequence)
        self._stats.num_resumed += bool(request.resume_ids)
        self._sequences[request.request_id] = sequence
        if sequence.deadline is not None:
            self._next_deadline = min(self._next_deadline, sequence.deadline)
        if request.constraint is not None:
            self._preparation.begin(sequence, request.constraint)

    def abort(self, request_id: str) -> None:
        """End a request and free what it holds, at once. Unknown ids are ignored."""
        sequence = self._sequences.get(request_id)
        if sequence is not None:
            self._finish(sequence, Committed(finish_reason="abort"))

    def preempt(self, request_id: str) -> None:
        """Take the slot of a request, which goes on when there is room again. Nothing to do for one that does
        not run."""
        sequence = self._sequences.get(request_id)
        if sequence is not None and sequence.status is SequenceStatus.RUNNING:
            self._scheduler.preempt(sequence)

    def pause(self, request_ids: Iterable[str]) -> None:
        """Let requests make no tokens until ``unpause``. Unknown ids are ignored."""
        for sequence in self._known(request_ids):
            self._scheduler.pause(sequence)

    def unpause(self, request_ids: Iterable[str]) -> None:
        """Let paused requests go on. Unknown ids are ignored."""
        for sequence in self._known(request_ids):
            self._scheduler.unpause(sequence)

    def fail_all(self, code: str, message: str) -> None:
        """End every request with an error."""
        for sequence in list(self._sequences.values()):
            self._fail(sequence, code, message)

    def step(self) -> list[EngineOutput]:
        """Advance every request that can: schedule, launch, fill masks, select, commit, emit."""
        self._admit_prepared()
        self._decide()
        self._expire()
        chunks = self._scheduler.schedule(
            only=self._quarantine.suspects(), prefill_tokens=self._execution.pace.num_tokens
        )
        chunks = within_room(chunks, self._execution.cost)
        if chunks:
            self._stats.count(chunks)
            with self._stats.timed("step_s"):
                self._compute(chunks)
        elif self._searching:
            wait(filter(None, (one.search for one in self._searching)), _MAX_WAIT_S, FIRST_COMPLETED)
        return self._outputs.take()

    def check(self) -> None:
        """Raise ``AssertionError`` if scheduler, cache and requests do not agree."""
        self._scheduler.check()
        num_scheduled = self._scheduler.num_waiting + self._scheduler.num_running + self._scheduler.num_paused
        assert num_scheduled == len(self._sequences), "a request is not scheduled"

    def reset(self, message: str) -> None:
        """After an exception out of ``step``: end every request with ``internal_error`` and start afresh.
        Needs a runner that still works."""
        for sequence in self._sequences.values():
            sequence.status = SequenceStatus.FINISHED
            self._stats.count_end(sequence)
            self._outputs.add(
                sequence, Committed(finish_reason="error"), failure=_failure("internal_error", message)
            )
        self._sequences.clear()
        self._start_afresh()

    def stats(self) -> EngineStats:
        """Counters since the start, and what is running now."""
        return self._stats.snapshot(
            self._sequences.values(),
            self._compiler.stats(),
            self._saved,
            num_waiting=self._scheduler.num_waiting,
            num_running=self._scheduler.num_running,
            num_slots=self._runner.info.num_slots,
        )

    # ---- requests in

    def _known(self, request_ids: Iterable[str]) -> list[Sequence]:
        return [self._sequences[name] for name in request_ids if name in self._sequences]

    def _start_afresh(self) -> None:
        self._quarantine = Quarantine()
        self._saved.clear()
        self._searching: dict[Sequence, None] = {}
        self._scheduler = Scheduler(
            KVCacheManager(
                self._runner,
                max_tokens=self._config.max_kv_tokens,
                prefix_cache=self._config.prefix_cache,
                saved=self._saved,
            ),
            max_batch_tokens=self._runner.info.max_batch_tokens,
            max_waiting=self._config.max_waiting,
            fairness_tokens=self._config.fairness_tokens,
        )

    def _new_sequence(self, request: EngineRequest) -> Sequence:
        self._num_arrivals += 1
        sequence = Sequence(
            request=request,
            arrival=self._num_arrivals,
            max_output_tokens=min(request.max_tokens, self._context_tokens - len(request.prompt_ids)),
            deadline=None if request.deadline_s is None else self._clock() + request.deadline_s,
            meter=RequestMeter(submitted_at=self._clock()),
        )
        if request.constraint is not None:
            sequence.status = SequenceStatus.WAITING_FOR_GRAMMAR
        elif request.thinking is not None:
            sequence.constraint = resumed_constraint(request, None, request.resume_ids)
        return sequence

    def _is_renewed(self, sequence: Sequence) -> bool:
        """Whether a sequence whose matcher has failed gets another one: what matchers of one grammar share was
        used up, and it may not be the one that did so. The grammar is compiled beside the step, and the output replayed."""
        state, constraint = sequence.constraint, sequence.request.constraint
        spent_by = None if state is None or constraint is None else state.spent_by
        if spent_by is None:
            return False
        if spent_by == "itself":
            sequence.num_renewals += 1
        if sequence.num_renewals > _MOST_RENEWALS:
            return False
        assert state is not None
        assert constraint is not None
        state.close()
        sequence.constraint = None
        if sequence.status is SequenceStatus.RUNNING:
            self._scheduler.await_grammar(sequence)
        self._preparation.begin(sequence, constraint)
        return True

    def _admit_prepared(self) -> None:
        """Sequences whose constraint has come may run."""
        for sequence, made in self._preparation.ready():
            if isinstance(made, EngineFailure):
                self._fail(sequence, made.code, made.message)
            else:
                sequence.constraint = made
                self._begin(sequence)

    def _begin(self, sequence: Sequence) -> None:
        """Let a sequence whose grammar has come wait for a slot. What its output must begin with is computed with
        the prompt."""
        self._advance(sequence, Progress())
        if sequence.status is not SequenceStatus.FINISHED and sequence.constraint is not None:
            self._scheduler.grammar_ready(sequence)

    def _expire(self) -> None:
        """End the requests that ran past their deadline."""
        now = self._clock()
        if now < self._next_deadline:
            return
        for sequence in list(self._sequences.values()):
            if sequence.deadline is not None and sequence.deadline <= now:
                self._fail(sequence, "request_timeout", "the request ran past its time limit")
        deadlines = (
            sequence.deadline for sequence in self._sequences.values() if sequence.deadline is not None
        )
        self._next_deadline = min(deadlines, default=math.inf)

    # ---- one pass

    def _compute(self, chunks: list[Chunk]) -> None:
        """One forward pass, and what follows from it for each sequence."""
        drafts = self._drafts(chunks)
        now = self._clock()
        for chunk in chunks:
            chunk.sequence.meter.passes(now)
        try:
            blocks = self._execution.run(chunks, drafts)
        except ForwardError as error:
            self._retry_apart([chunk.sequence for chunk in chunks], error)
            return
        for block in blocks:
            self._commit(block)
        if self._speculator is not None:
            self._speculator.observe(block.sequence for block in blocks)

    def _drafts(self, chunks: list[Chunk]) -> list[list[int]]:
        """What to compute behind each chunk on the chance that it is chosen."""
        if self._speculator is None or self._quarantine.suspects() is not None:
            return [[] for _ in chunks]
        num_free = self._runner.info.max_batch_tokens - sum(chunk.num_tokens for chunk in chunks)
        drafts = self._speculator.drafts(chunks, num_free, self._execution.cost)
        self._stats.num_draft_tokens += sum(map(len, drafts))
        return drafts

    def _commit(self, block: Block) -> None:
        """Commit what was chosen and what is forced then."""
        sequence = block.sequence
        sequence.meter.num_drafted += len(block.draft)
        if has_gone_back(sequence, self._scheduler):
            return
        progress = commit_choices(
            sequence, block.draft[: block.num_usable], block.choices, self._model_stop_ids
        )
        if progress.is_tainted:
            self._scheduler.restart(sequence)
        elif block.draft:
            self._scheduler.keep_draft(sequence, progress.num_accepted, len(block.draft))
        self._settle(sequence, progress)

    def _decide(self) -> None:
        """Commit the choices about which a search has decided."""
        for sequence in [one for one in self._searching if not one.is_searching]:
            del self._searching[sequence]
            if sequence.undecided is not None and not sequence.num_pending_tokens:
                self._settle(sequence, commit_choices(sequence, (), (), self._model_stop_ids))

    def _settle(self, sequence: Sequence, progress: Progress) -> None:
        """``progress`` is what came of choices: count it, and go on."""
        sequence.meter.num_accepted += progress.num_accepted
        if progress.num_tokens:
            sequence.meter.chose(self._clock())
        self._advance(sequence, progress)
        is_waiting = sequence.num_pending_tokens or sequence.undecided is not None
        if sequence.status is SequenceStatus.RUNNING and not is_waiting:
            self._scheduler.step_back(sequence)  # it is to be closed, by tokens that need logits

    def _advance(self, sequence: Sequence, progress: Progress) -> None:
        """Add what is forced behind ``progress``, and tell the request."""
        if self._config.forced_tokens:
            commit_forced(sequence, progress, self._model_stop_ids)
        if progress.is_undecided:
            self._searching[sequence] = None
        num_tokens = progress.num_tokens
        sequence.num_new_tokens = max(1, num_tokens)
        self._stats.num_generated_tokens += num_tokens
        self._stats.num_forced_tokens += progress.num_forced
        sequence.meter.num_forced += progress.num_forced
        self._stats.num_accepted_tokens += progress.num_accepted
        parts = released(sequence, progress)
        if not sequence.request.report_accepting and len(parts) > 1:
            parts = [merged(parts)]
        is_going_on = progress.failure is not None and self._is_renewed(sequence)
        if is_going_on or not progress.is_over:
            for part in parts:
                self._outputs.add(sequence, part)
            return
        if progress.failure is None:
            *parts, last = parts
        else:
            last = Committed(finish_reason="error")
        for part in parts:
            self._outputs.add(sequence, part)
        self._finish(sequence, last, progress.failure)

    def _retry_apart(self, failed: list[Sequence], error: ForwardError) -> None:
        """A pass failed and its slots hold nothing usable. Compute them again in halves of the batch; who
        fails alone ends."""
        _log.warning("a forward pass over %d sequences failed: %s", len(failed), error)
        for sequence in failed:
            self._scheduler.restart(sequence)
        if len(failed) == 1:
            self._fail(failed[0], "forward_failed", str(error))
            return
        self._quarantine.split(failed)

    # ---- outputs

    def _finish(self, sequence: Sequence, committed: Committed, failure: EngineFailure | None = None) -> None:
        """Free everything ``sequence`` holds and emit its last output."""
        self._scheduler.remove(sequence)
        self._searching.pop(sequence, None)
        del self._sequences[sequence.request_id]
        self._stats.count_end(sequence)
        if sequence.constraint is not None:
            sequence.constraint.close()
        if failure is not None and failure.code == "matcher_failed" and sequence.request.constraint:
            self._compiler.forget(sequence.request.constraint.key)
        self._outputs.add(sequence, committed, failure)

    def _fail(self, sequence: Sequence, code: str, message: str) -> None:
        self._finish(sequence, Committed(finish_reason="error"), _failure(code, message))


def _failure(code: str, message: str) -> EngineFailure:
    return EngineFailure(code=code, message=message)
