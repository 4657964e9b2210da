from __future__ import annotations

import pytest

from interlock.core.sampling import SamplingParams
from interlock.engine.penalties import PenaltyState


@pytest.mark.parametrize(
    ("params", "needed"),
    [
        (SamplingParams(), False),
        (SamplingParams(frequency_penalty=0.5), True),
        (SamplingParams(presence_penalty=-0.5), True),
        (SamplingParams(repetition_penalty=1.1), True),
    ],
)
def test_state_is_kept_only_where_parameters_need_it(params: SamplingParams, needed: bool):
    assert (PenaltyState.of(params, (1,)) is not None) == needed


def test_counts_are_of_the_output_and_seen_is_of_both():
    state = PenaltyState((3, 3, 4))
    for token_id in (4, 9, 9):
        state.add(token_id)
    assert dict(state.output_counts) == {4: 1, 9: 2}
    assert state.seen.tolist() == [3, 4, 9]


def test_seen_grows_without_limit_and_without_duplicates():
    state = PenaltyState(())
    for token_id in [*range(500), *range(500)]:
        state.add(token_id)
    assert state.seen.tolist() == list(range(500))


def test_a_state_ahead_of_the_output_leaves_it_alone():
    state = PenaltyState((3,))
    state.add(4)
    ahead = state.after((5, 4))
    assert (dict(ahead.output_counts), ahead.seen.tolist()) == ({4: 2, 5: 1}, [3, 4, 5])
    assert (dict(state.output_counts), state.seen.tolist()) == ({4: 1}, [3, 4])
