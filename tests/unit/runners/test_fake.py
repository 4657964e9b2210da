from __future__ import annotations

import json
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from interlock.constraints.bitmask import allocate, set_only
from interlock.core.sampling import SamplingParams
from interlock.errors import InterlockError
from interlock.runners.base import ForwardError, StepBatch
from interlock.runners.fake import (
    FakeRunner,
    Faults,
    Script,
    ScriptEntry,
    UniformLogits,
    WantedLogits,
    load_script,
)
from interlock.sampling.base import Choice, SamplingRow
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
SIZE = TOKENIZER.vocabulary.size
STOP = TOKENIZER.vocabulary.stop_ids[0]


def batch_of(slot: int, start: int, ids: Sequence[int]) -> StepBatch:
    return StepBatch(
        token_ids=np.array(list(ids), dtype=np.int32),
        positions=np.arange(start, start + len(ids), dtype=np.int32),
        slots=np.full(len(ids), slot, dtype=np.int32),
        logits_at=np.array([len(ids) - 1], dtype=np.int32),
    )


def row_of(mask=None, **params: object) -> SamplingRow:
    return SamplingRow(
        params=SamplingParams(**{"temperature": 0.0, **params}), position=0, vocab_size=SIZE, mask=mask
    )


def allow(*ids: int) -> np.ndarray:
    mask = allocate(1, SIZE)[0]
    set_only(mask, ids)
    return mask


def step(
    runner: FakeRunner, slot: int, start: int, ids: Sequence[int], row: SamplingRow | None = None
) -> Choice:
    return runner.launch(batch_of(slot, start, ids)).select([row or row_of()]).choices[0]


def scripted(*entries: ScriptEntry) -> FakeRunner:
    return FakeRunner(SIZE, logits=WantedLogits(SIZE, Script(entries, TOKENIZER).wanted), slots=2)


def generate(runner: FakeRunner, prompt: str, *, temperature: float = 0.0, most: int = 60) -> str:
    runner.truncate(0, 0)
    ids, start, output = TOKENIZER.encode(prompt), 0, []
    while len(output) < most:
        choice = step(runner, 0, start, ids, row_of(temperature=temperature))
        start += len(ids)
        if choice.token_id == STOP:
            return TOKENIZER.decode(output)
        output.append(choice.token_id)
        ids = [choice.token_id]
    return TOKENIZER.decode(output)


# --- scripts -----------------------------------------------------------------------------------------

SCRIPT = (
    ScriptEntry(when="weather", say=('<tool_call>\n{"name": "get_weather"}\n</tool_call>',)),
    ScriptEntry(when="thanks", say=("You are welcome.",)),
    ScriptEntry(say=("I do not know.",)),
)
TURNS = {
    "an entry whose text is in the prompt": (
        "weather in Paris?",
        '<tool_call>\n{"name": "get_weather"}\n</tool_call>',
    ),
    "the entry whose text comes last": ("weather? ... thanks", "You are welcome."),
    "the entry without a condition": ("hm", "I do not know."),
    "again, after its text in the history": ("hm I do not know. hm", "I do not know."),
}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("case", TURNS)
def test_a_script_says(case, temperature):
    prompt, expected = TURNS[case]
    assert generate(scripted(*SCRIPT), prompt + "<|im_end|>", temperature=temperature) == expected


def test_spellings_of_special_tokens_are_those_tokens_unless_they_are_text():
    script = Script([ScriptEntry(say=("<think>", {"text": "<think>"}))], TOKENIZER)
    special = TOKENIZER.special_tokens["<think>"]
    assert script.wanted([65]) == {special: 1.0}
    assert script.wanted([65, special]) == {ord("<"): 1.0}


def test_a_script_goes_on_after_a_replay_in_another_slot():
    runner = scripted(ScriptEntry(say=("abc",)))
    assert step(runner, 0, 0, [*b"? ", *b"ab"]).token_id == ord("c")
    assert step(runner, 1, 0, b"? a").token_id == ord("b")


def test_a_mask_forces_otherwise():
    runner = scripted(ScriptEntry(say=("abc",)))
    assert step(runner, 0, 0, b"?", row_of(allow(*b"xyz"))).token_id in b"xyz"


def test_tokens_that_continue_the_text_are_wanted_longest_first():
    def want(ids: Sequence[int]) -> dict[int, float]:
        return {97: 1.0, 98: 2.0}

    runner = FakeRunner(SIZE, logits=WantedLogits(SIZE, want))
    assert step(runner, 0, 0, [1]).token_id == 98
    assert step(runner, 0, 1, [1], row_of(allow(97, 99))).token_id == 97


BAD_SCRIPTS = {
    "no JSON": "{",
    "no list of entries": '{"say": "x"}',
    "nothing to say": '[{"when": "x"}]',
    "an unknown key": '[{"say": "x", "wen": "y"}]',
    "an unknown piece": '[{"say": [{"token": 3}]}]',
    "a wrong condition": '[{"say": "x", "when": 3}]',
}


@pytest.mark.parametrize("case", BAD_SCRIPTS)
def test_bad_script_files_are_refused(case, tmp_path):
    path = tmp_path / "script.json"
    path.write_text(BAD_SCRIPTS[case])
    with pytest.raises(InterlockError, match="not a script"):
        load_script(path)


def test_a_script_file_is_read(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"when": None, "say": "a"}, {"when": "w", "say": ["b", {"text": "c"}]}]))
    assert load_script(path) == (ScriptEntry(say=("a",)), ScriptEntry(when="w", say=("b", {"text": "c"})))


# --- uniform logits ----------------------------------------------------------------------------------


def test_uniform_logits_differ_by_prefix_and_seed():
    def first(seed: int, ids: Sequence[int]) -> int:
        return step(
            FakeRunner(SIZE, logits=UniformLogits(SIZE, seed)), 0, 0, ids, row_of(temperature=1.0)
        ).token_id

    assert first(0, [1, 2, 3]) == first(0, [1, 2, 3])
    assert len({first(seed, ids) for seed in range(6) for ids in ([1, 2], [2, 1], [1])}) > 6


# --- faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults", [Faults(poison_ids={66}), Faults(fail_launches={1})], ids=["poison", "launch"]
)
def test_a_failed_pass_empties_the_slots_of_its_batch_only(faults):
    runner = FakeRunner(SIZE, faults=faults)
    step(runner, 1, 0, [65])
    with pytest.raises(ForwardError):
        step(runner, 0, 0, [65, 66])
    assert (runner.tokens(0), runner.tokens(1)) == ((), (65,))
    assert step(runner, 0, 0, [65]).error is None


def test_a_poisoned_row_is_nan_and_harms_no_other():
    runner = FakeRunner(SIZE, faults=Faults(nan_after_ids={66}))
    batch = StepBatch(
        token_ids=np.array([66, 67], np.int32),
        positions=np.zeros(2, np.int32),
        slots=np.arange(2, dtype=np.int32),
        logits_at=np.arange(2, dtype=np.int32),
    )
    bad, good = runner.launch(batch).select([row_of(), row_of()]).choices
    assert bad == Choice(token_id=-1, error="sampling_failed")
    assert good.error is None


def test_a_gate_holds_a_pass_back():
    faults = Faults(gate=threading.Event())
    forward = FakeRunner(SIZE, faults=faults).launch(batch_of(0, 0, [65]))
    done = threading.Event()
    thread = threading.Thread(target=lambda: (forward.discard(), done.set()))
    thread.start()
    assert not done.is_set()
    faults.gate.set()
    assert done.wait(5)
    thread.join()


def test_a_gate_that_stays_closed_fails_the_pass():
    runner = FakeRunner(SIZE, faults=Faults(gate=threading.Event(), gate_timeout_s=0.0))
    with pytest.raises(ForwardError, match="gate"):
        runner.launch(batch_of(0, 0, [65])).discard()
