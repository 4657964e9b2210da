"""What steps tell their requests."""

from __future__ import annotations

from collections.abc import Callable

from interlock.core.engine import EngineFailure, EngineOutput, TokenLogprob
from interlock.core.timings import RequestTimings
from interlock.engine.committed import Committed
from interlock.engine.sequence import Sequence


class Outbox:
    """Outputs that are not delivered yet, in order. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._outputs: list[EngineOutput] = []

    def __len__(self) -> int:
        return len(self._outputs)

    def add(self, sequence: Sequence, committed: Committed, failure: EngineFailure | None = None) -> None:
        """Tell a request what was committed. failure: why it ends, where ``committed`` says that it does by an error."""
        self._outputs.append(
            EngineOutput(
                request_id=sequence.request_id,
                token_ids=committed.token_ids,
                logprobs=committed.logprobs,
                prompt_logprobs=_taken_scores(sequence) if committed.token_ids else (),
                trace=committed.trace,
                timings=None if committed.finish_reason is None else self._timings(sequence),
                finish_reason=committed.finish_reason,
                failure=failure,
                is_accepting=committed.is_accepting,
                num_prompt_tokens=sequence.num_prompt_tokens,
                num_cached_tokens=sequence.num_cached_tokens or 0,
            )
        )

    def take(self) -> list[EngineOutput]:
        """All of them, once."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def _timings(self, sequence: Sequence) -> RequestTimings:
        return sequence.meter.timings(
            self._clock(),
            num_vetoed=sequence.num_vetoed,
            num_preempted=sequence.num_preemptions,
            num_backtracked=sequence.num_backtracks,
        )


def _taken_scores(sequence: Sequence) -> tuple[TokenLogprob, ...]:
    """The scores of the prompt, which are told once."""
    scores, sequence.prompt_scores = sequence.prompt_scores, None
    return tuple(scores or ())
