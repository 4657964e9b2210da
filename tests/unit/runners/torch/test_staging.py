"""Rows of masks on the device: a row of nobody allows everything, whatever happened before."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from interlock.constraints import bitmask  # noqa: E402
from interlock.runners.torch import staging  # noqa: E402
from interlock.runners.torch.staging import MaskStage  # noqa: E402

VOCAB_SIZE = 70
ALL = bitmask.all_allowed(VOCAB_SIZE)


def mask_of(*ids: int) -> bitmask.Mask:
    mask = bitmask.allocate(1, VOCAB_SIZE)[0]
    bitmask.set_only(mask, ids)
    return mask


@pytest.fixture
def stage() -> MaskStage:
    return MaskStage(6, VOCAB_SIZE, torch.device("cpu"))


def rows_that_forbid(buffer: torch.Tensor) -> list[int]:
    return np.flatnonzero((buffer.numpy() != ALL).any(axis=1)).tolist()


def test_masks_lie_in_their_rows_and_all_others_allow_everything(stage):
    buffer = stage.stage({1: mask_of(3), 4: mask_of(69)})
    assert buffer.dtype == torch.int32
    assert np.array_equal(buffer[1].numpy(), mask_of(3))
    assert np.array_equal(buffer[4].numpy(), mask_of(69))
    assert rows_that_forbid(buffer) == [1, 4]


def test_a_step_does_not_write_to_what_the_one_before_reads(stage):
    first = stage.stage({0: mask_of(1)})
    before = first.clone()
    second = stage.stage({0: mask_of(2), 1: mask_of(5)})
    assert second.data_ptr() != first.data_ptr()
    assert torch.equal(first, before)
    assert stage.stage({}).data_ptr() == first.data_ptr()


def test_rows_that_are_no_longer_masked_allow_everything_again(stage):
    for rows in ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [2], [], [5], []):
        assert rows_that_forbid(stage.stage({row: mask_of(row) for row in rows})) == rows


def test_rows_that_allow_everything_stay_on_the_device(stage, monkeypatch):
    """Free steps upload nothing, and what was masked is put right once."""
    copied = []
    monkeypatch.setattr(stage, "_copy", lambda _host, _device, start, end: copied.append((start, end)))
    for rows in ([], [], [2], [], [], []):
        stage.stage({row: mask_of(row) for row in rows})
    assert copied == [(2, 3), (2, 3)]  # masked, then freed in the buffer's next turn


BAD = {"allows no token": mask_of(), "of 2 words": bitmask.all_allowed(64)}


@pytest.mark.parametrize("reason", BAD)
def test_a_mask_that_cannot_be_is_refused_before_anything_is_written(stage, reason):
    stage.stage({0: mask_of(1)})
    last = stage.stage({0: mask_of(2)})
    before = [buffer.clone() for buffer in stage._host]
    with pytest.raises(ValueError, match=reason):
        stage.stage({0: mask_of(7), 3: BAD[reason]})
    assert all(torch.equal(*pair) for pair in zip(stage._host, before, strict=True))
    assert stage.stage({}).data_ptr() != last.data_ptr()  # the turn is as it was


def test_a_failed_staging_leaves_no_row_that_forbids(stage, monkeypatch):
    stage.stage({2: mask_of(1)})
    stage.stage({3: mask_of(1)})
    with monkeypatch.context() as patch:
        patch.setattr(staging.MaskStage, "_copy", lambda *_: pytest.fail("the copy failed"))
        with pytest.raises(pytest.fail.Exception):
            stage.stage({0: mask_of(5), 1: mask_of(6)})
    assert [rows_that_forbid(buffer) for buffer in stage._device] == [[], []]
    assert rows_that_forbid(stage.stage({4: mask_of(8)})) == [4]
