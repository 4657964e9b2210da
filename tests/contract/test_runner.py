"""What every runner must do. Logits are compared through logprobs: exactly where a runner declares them exact, else
within ``TOLERANCE``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from interlock.config import EngineConfig, LlamaCppConfig, TorchConfig
from interlock.constraints.bitmask import allocate, set_only
from interlock.core.sampling import SamplingParams
from interlock.runners.base import ModelRunner, StepBatch
from interlock.runners.fake import FakeRunner
from interlock.runners.registry import create_runner
from interlock.sampling.base import Choice, SamplingRow
from interlock.tokenization.byte_tokenizer import byte_tokenizer

VOCAB_SIZE = 49_152
CONTEXT_TOKENS = 256
MAX_BATCH_TOKENS = 256
TOLERANCE = 1e-3
PROMPT = np.random.default_rng(0).integers(0, VOCAB_SIZE, 150).tolist()
RUNNERS = ["fake", pytest.param("llama_cpp", marks=pytest.mark.model), "torch", "torch in fixed shapes"]


@pytest.fixture(scope="module", params=RUNNERS)
def shared_runner(request) -> Iterator[ModelRunner]:
    runner = create(request)
    yield runner
    runner.close()


def create(request) -> ModelRunner:
    if request.param == "fake":
        return FakeRunner(VOCAB_SIZE, slots=4, context_tokens=CONTEXT_TOKENS, max_batch_tokens=MAX_BATCH_TOKENS)
    if request.param == "llama_cpp":
        model = request.getfixturevalue("demo_model")
    else:
        random_model = request.getfixturevalue("random_model")
        # weights large enough that no two tokens are alike
        model = random_model("LlamaConfig", vocab_size=VOCAB_SIZE, initializer_range=0.3)
    config = EngineConfig(
        model=model,
        slots=4,
        context_tokens=CONTEXT_TOKENS,
        max_batch_tokens=MAX_BATCH_TOKENS,
        llama_cpp=LlamaCppConfig(threads=1),
        torch=TorchConfig(
            device=request.getfixturevalue("torch_device"),
            dtype="float32",
            threads=1,
            static_shapes=request.param.endswith("fixed shapes"),
            fused=request.param.endswith("fixed shapes") or None,
        ),
    )
    return create_runner(config, byte_tokenizer())


@pytest.fixture
def runner(shared_runner) -> ModelRunner:
    for slot in range(shared_runner.info.num_slots):
        shared_runner.truncate(slot, 0)
    return shared_runner


def batch_of(*parts: tuple[int, int, Sequence[int]], logits_at: Sequence[int] | None = None) -> StepBatch:
    """Parts are (slot, first position, ids); by default with the logits of each part's last token."""
    ids = [token for _, _, part in parts for token in part]
    ends = np.cumsum([len(part) for _, _, part in parts]) - 1
    return StepBatch(
        token_ids=np.array(ids, dtype=np.int32),
        positions=np.array([p for _, start, part in parts for p in range(start, start + len(part))], np.int32),
        slots=np.array([slot for slot, _, part in parts for _ in part], dtype=np.int32),
        logits_at=np.array(ends if logits_at is None else logits_at, dtype=np.int32),
    )


def row_of(mask=None, **params: object) -> SamplingRow:
    return SamplingRow(
        params=SamplingParams(**{"temperature": 0.0, **params}), position=0, vocab_size=VOCAB_SIZE, mask=mask
    )


@dataclass(frozen=True, eq=False)
class Logits:
    """One row: (id, logprob) of the 500 best tokens. Two are equal only if they come of the same tokens."""

    top: tuple[tuple[int, float], ...]
    exact: bool

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Logits)
        if self.exact:
            return self.top == other.top
        known = dict(other.top)
        return all(
            abs(known.get(token_id, np.inf) - logprob) < TOLERANCE for token_id, logprob in self.top[:250]
        )

    __hash__ = None


def logits(runner: ModelRunner, batch: StepBatch) -> list[Logits]:
    rows = [row_of(logprobs=500)] * len(batch.logits_at)
    exact = runner.info.capabilities.bit_identical
    return [Logits(choice.logprob.top, exact) for choice in runner.launch(batch).select(rows).choices]


def choose(runner: ModelRunner, batch: StepBatch, *rows: SamplingRow) -> tuple[Choice, ...]:
    return runner.launch(batch).select(rows).choices


def test_declares_whether_logits_are_exact(runner):
    assert runner.info.capabilities.bit_identical == ("torch" not in runner.info.name)
    assert runner.info.num_logits == VOCAB_SIZE


def test_rows_of_other_tokens_are_not_taken_for_equal(runner):
    first, second, other = logits(
        runner, batch_of((0, 0, PROMPT[:9]), (1, 0, PROMPT[:9]), (2, 0, [*PROMPT[:8], 7]))
    )
    assert first == second
    assert first != other


@pytest.mark.parametrize("chunk", [1, 7, 64, 149])
def test_prefill_in_chunks_equals_prefill_at_once(runner, chunk):
    (expected,) = logits(runner, batch_of((0, 0, PROMPT)))
    found = None
    for start in range(0, len(PROMPT), chunk):
        (found,) = logits(runner, batch_of((1, start, PROMPT[start : start + chunk])))
    assert found == expected


def test_a_step_without_logits_is_part_of_a_prefill(runner):
    (expected,) = logits(runner, batch_of((0, 0, PROMPT)))
    runner.launch(batch_of((1, 0, PROMPT[:50]), logits_at=[])).discard()
    assert runner.launch(batch_of((1, 50, PROMPT[50:70]), logits_at=[])).select([]).choices == ()
    assert logits(runner, batch_of((1, 70, PROMPT[70:]))) == [expected]


def test_a_batch_equals_each_slot_alone(runner):
    prompts = [PROMPT[:5], PROMPT[5:50], PROMPT[50:51], PROMPT[60:140]]
    alone = []
    for slot, prompt in enumerate(prompts):
        alone += logits(runner, batch_of((slot, 0, prompt)))
        runner.truncate(slot, 0)
    assert logits(runner, batch_of(*((s, 0, p) for s, p in enumerate(prompts)))) == alone


def test_decoding_beside_a_prefill_equals_decoding_alone(runner):
    logits(runner, batch_of((0, 0, PROMPT[:20]), (2, 0, PROMPT[20:60])))
    mixed = logits(runner, batch_of((0, 20, [5]), (1, 0, PROMPT[:100]), (2, 40, [6])))
    runner.truncate(0, 20)
    runner.truncate(1, 0)
    runner.truncate(2, 40)
    alone = [
        *logits(runner, batch_of((0, 20, [5]))),
        *logits(runner, batch_of((1, 0, PROMPT[:100]))),
        *logits(runner, batch_of((2, 40, [6]))),
    ]
    assert mixed == alone


def test_slots_may_come_in_any_order(runner):
    parts = [(0, 0, PROMPT[:4]), (1, 0, PROMPT[4:9]), (3, 0, PROMPT[9:12])]
    expected = logits(runner, batch_of(*parts))
    for slot, _, _ in parts:
        runner.truncate(slot, 0)
    assert logits(runner, batch_of(parts[2], parts[0], parts[1])) == [expected[2], expected[0], expected[1]]


def test_rows_of_a_block_equal_single_steps(runner):
    logits(runner, batch_of((0, 0, PROMPT[:30]), (1, 0, PROMPT[:30])))
    block = logits(runner, batch_of((0, 30, PROMPT[30:38]), logits_at=range(8)))
    single = [logits(runner, batch_of((1, i, [PROMPT[i]])))[0] for i in range(30, 38)]
    assert block == single


def test_logits_come_in_the_order_asked_for(runner):
    everything = logits(runner, batch_of((0, 0, PROMPT[:6]), (1, 0, PROMPT[6:10]), logits_at=range(10)))
    runner.truncate(0, 0)
    runner.truncate(1, 0)
    some = logits(runner, batch_of((0, 0, PROMPT[:6]), (1, 0, PROMPT[6:10]), logits_at=[2, 5, 8]))
    assert some == [everything[2], everything[5], everything[8]]


def test_truncating_and_going_on_equals_a_fresh_slot(runner):
    logits(runner, batch_of((0, 0, PROMPT[:40])))
    runner.truncate(0, 25)
    resumed = logits(runner, batch_of((0, 25, PROMPT[60:70])))
    assert resumed == logits(runner, batch_of((1, 0, PROMPT[:25] + PROMPT[60:70])))


@pytest.mark.parametrize("length", [0, 1, 25, 40])
def test_a_copied_prefix_goes_on_like_its_source(runner, length):
    logits(runner, batch_of((2, 0, PROMPT[:40]), (0, 0, PROMPT[90:130])))
    runner.copy_prefix(2, 0, length)
    copied = logits(runner, batch_of((0, length, PROMPT[60:70])))
    assert copied == logits(runner, batch_of((1, 0, PROMPT[:length] + PROMPT[60:70])))
    untouched = logits(runner, batch_of((2, 40, [7])))
    assert untouched == logits(runner, batch_of((3, 0, [*PROMPT[:40], 7])))


@pytest.mark.parametrize("length", [1, 25, 40])
def test_a_restored_state_goes_on_like_the_slot_that_was_saved(runner, length):
    logits(runner, batch_of((2, 0, PROMPT[:40]), (0, 0, PROMPT[90:130])))
    num_bytes = runner.state_bytes(2)
    state = runner.save_state(2)
    assert (state.num_tokens, state.num_bytes) == (40, num_bytes)
    runner.truncate(2, 0)
    logits(runner, batch_of((2, 0, PROMPT[60:90])))
    for slot in (2, 0):  # one state, two slots; neither was empty
        assert runner.restore_state(slot, state, length)
    restored = logits(runner, batch_of((0, length, PROMPT[60:70]), (2, length, PROMPT[60:70])))
    assert restored == logits(runner, batch_of((1, 0, PROMPT[:length] + PROMPT[60:70]))) * 2


def test_a_copy_and_a_restored_state_do_not_meet(runner):
    """A copy is there at once: what is done to its source or to itself before the next pass does not change it."""
    logits(runner, batch_of((0, 0, PROMPT[:20]), (1, 0, PROMPT[20:50])))
    other = runner.save_state(1)
    runner.copy_prefix(0, 2, 20)
    copied = runner.save_state(2)
    assert runner.restore_state(0, other, 30)
    assert runner.restore_state(3, copied, 20)
    found = logits(runner, batch_of((0, 30, [7]), (2, 20, [7]), (3, 20, [7])))
    runner.truncate(1, 0)
    (expected,) = logits(runner, batch_of((1, 0, [*PROMPT[:20], 7])))
    runner.truncate(1, 0)
    (expected_other,) = logits(runner, batch_of((1, 0, [*PROMPT[20:50], 7])))
    assert found == [expected_other, expected, expected]


def test_selection_honours_masks_per_row(runner):
    masks = allocate(2, VOCAB_SIZE)
    set_only(masks[0], [17])
    choices = choose(
        runner,
        batch_of((0, 0, PROMPT[:3]), (1, 0, PROMPT[:3]), (2, 0, PROMPT[:3])),
        row_of(masks[0]),
        row_of(),
        row_of(masks[1]),
    )
    assert choices[0] == Choice(token_id=17)
    assert choices[1].error is None
    assert choices[2] == Choice(token_id=-1, error="no_token_allowed")


def test_tokens_that_stand_are_scored_beside_choices(runner):
    known = [row.top[10] for row in logits(runner, batch_of((0, 0, PROMPT[:7]), logits_at=range(7)))]
    scored = [
        SamplingRow(params=SamplingParams(logprobs=2), position=0, vocab_size=VOCAB_SIZE, target=token_id)
        for token_id, _ in known
    ]
    only = allocate(1, VOCAB_SIZE)[0]
    set_only(only, [17])
    batch = batch_of((1, 0, PROMPT[:8]), (2, 0, PROMPT[:3]), logits_at=[*range(8), 10])
    *scores, best, masked = choose(runner, batch, *scored, row_of(), row_of(only))
    assert [score.logprob.rank for score in scores] == [11] * 7
    assert [(score.token_id, score.logprob.logprob) for score in scores] == [
        (token_id, pytest.approx(logprob, abs=TOLERANCE)) for token_id, logprob in known
    ]
    assert best.error is None
    assert masked == Choice(token_id=17)


def test_equal_seeds_give_equal_tokens(runner):
    row = row_of(temperature=1.0, seed=3)
    parts = [(slot, 0, PROMPT[:9]) for slot in range(4)]
    assert len(set(choose(runner, batch_of(*parts), *[row] * 4))) == 1


def test_a_discarded_pass_leaves_its_tokens_in_the_cache(runner):
    runner.launch(batch_of((0, 0, PROMPT[:8]))).discard()
    assert logits(runner, batch_of((0, 8, [9]))) == logits(runner, batch_of((1, 0, [*PROMPT[:8], 9])))


FULL = [1] * (CONTEXT_TOKENS - 10)
BAD_BATCHES = {
    "empty": batch_of(),
    "a hole": batch_of((0, 11, [1])),
    "a repetition": batch_of((0, 9, [1])),
    "a slot that is not there": batch_of((4, 0, [1])),
    "a negative slot": batch_of((-1, 0, [1])),
    "a slot in two places": batch_of((0, 10, [1]), (1, 0, [1]), (0, 11, [1])),
    "an id that is not there": batch_of((0, 10, [VOCAB_SIZE])),
    "a negative id": batch_of((0, 10, [-1])),
    "past the context": batch_of((0, 10, [*FULL, 1])),
    "too many tokens": batch_of((0, 10, FULL), (1, 0, [1] * 11)),
    "logits outside": batch_of((0, 10, [1]), logits_at=[1]),
    "logits that do not rise": batch_of((0, 10, [1, 2]), logits_at=[1, 1]),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_invalid_batches_are_refused_and_change_nothing(runner, case):
    logits(runner, batch_of((0, 0, PROMPT[:10])))
    with pytest.raises(ValueError):
        runner.launch(BAD_BATCHES[case])
    assert logits(runner, batch_of((0, 10, [7]))) == logits(runner, batch_of((1, 0, [*PROMPT[:10], 7])))


BAD_CALLS = {
    "truncate to more than there is": lambda runner: runner.truncate(0, 11),
    "truncate to a negative length": lambda runner: runner.truncate(0, -1),
    "truncate no such slot": lambda runner: runner.truncate(4, 0),
    "copy more than there is": lambda runner: runner.copy_prefix(0, 1, 11),
    "copy onto itself": lambda runner: runner.copy_prefix(0, 0, 5),
    "copy to no such slot": lambda runner: runner.copy_prefix(0, 4, 5),
    "save no such slot": lambda runner: runner.save_state(4),
    "restore to no such slot": lambda runner: runner.restore_state(4, runner.save_state(0), 5),
    "restore more than there is": lambda runner: runner.restore_state(1, runner.save_state(0), 11),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_invalid_slot_operations_are_refused(runner, case):
    logits(runner, batch_of((0, 0, PROMPT[:10])))
    with pytest.raises(ValueError):
        BAD_CALLS[case](runner)


def test_nothing_else_happens_while_a_pass_is_in_flight(runner):
    forward = runner.launch(batch_of((0, 0, PROMPT[:10])))
    with pytest.raises(ValueError, match="in flight"):
        runner.launch(batch_of((1, 0, [1])))
    with pytest.raises(ValueError, match="in flight"):
        runner.truncate(0, 0)
    with pytest.raises(ValueError, match="sampling rows"):
        forward.select([])
    forward.discard()
    with pytest.raises(ValueError, match="twice"):
        forward.discard()


def test_work_beside_a_pass_gives_its_result_and_changes_no_logits(runner):
    expected = logits(runner, batch_of((0, 0, PROMPT[:10])))
    runner.truncate(0, 0)
    forward = runner.launch(batch_of((0, 0, PROMPT[:10])))
    assert forward.beside(lambda: "masks") == "masks"
    (choice,) = forward.select([row_of(logprobs=500)]).choices
    assert [Logits(choice.logprob.top, runner.info.capabilities.bit_identical)] == expected


def test_what_work_beside_a_pass_raises_reaches_the_caller_and_the_pass_still_ends(runner):
    forward = runner.launch(batch_of((0, 0, PROMPT[:10])))
    with pytest.raises(ZeroDivisionError):
        forward.beside(lambda: 1 // 0)
    forward.discard()
    logits(runner, batch_of((0, 10, PROMPT[10:12])))


def test_a_context_can_be_filled_to_the_last_token(runner):
    ids = (PROMPT * 2)[:CONTEXT_TOKENS]
    logits(runner, batch_of((3, 0, ids)))
    with pytest.raises(ValueError, match="context"):
        runner.launch(batch_of((3, CONTEXT_TOKENS, [1])))


@pytest.mark.parametrize("shared_runner", ["fake"], indirect=True)
def test_close_may_be_repeated_and_ends_all_use(shared_runner):
    shared_runner.close()
    shared_runner.close()
    with pytest.raises(ValueError, match="closed"):
        shared_runner.launch(batch_of((0, 0, [1])))
