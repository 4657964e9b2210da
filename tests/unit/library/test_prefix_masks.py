"""Sequences are told apart by their tokens, whatever the caller does with its rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from interlock import InterlockError, Model
from interlock.constraints import bitmask
from interlock.library.prefix_masks import PrefixMasks


def ids(model: Model, *texts: str) -> list[tuple[int, ...]]:
    return [tuple(model.tokenizer.encode(text)) for text in texts]


def allowed(model: Model, masks: list) -> list[str | None]:
    """The characters of each mask; ``$`` stands for the stop ids."""
    vocabulary = model.tokenizer.vocabulary
    found: list[str | None] = []
    for mask in masks:
        if mask is None:
            found.append(None)
            continue
        bits = np.flatnonzero(bitmask.unpack(mask, vocabulary.size)).tolist()
        texts = {"$" if one in vocabulary.stop_ids else vocabulary.tokens[one].decode() for one in bits}
        found.append("".join(sorted(texts)))
    return found


def test_each_row_follows_its_own_tokens(model: Model):
    masks = PrefixMasks([model.choice(["abc", "abd", "xyz"])])
    assert allowed(model, masks.fill(ids(model, ""))) == ["ax"]
    assert allowed(model, masks.fill(ids(model, "a", "x"))) == ["b", "y"]
    assert allowed(model, masks.fill(ids(model, "ab", "ab", "xy"))) == ["cd", "cd", "z"]  # two of one, copied


def test_rows_may_change_places_and_be_cut_back(model: Model):
    masks = PrefixMasks([model.choice(["abc", "abd", "xyz"])])
    masks.fill(ids(model, "a", "x"))
    assert allowed(model, masks.fill(ids(model, "xy", "ab"))) == ["z", "cd"]
    assert allowed(model, masks.fill(ids(model, "x", "a"))) == ["y", "b"]  # shorter, as after a refused draft
    assert allowed(model, masks.fill(ids(model, "abd", "xyz"))) == ["$", "$"]  # several tokens further


def test_behind_an_end_only_stop_ids_follow_and_padding_is_passed_over(model: Model):
    masks = PrefixMasks([model.choice(["a"])])
    stop = model.tokenizer.vocabulary.stop_ids[0]
    (text,) = ids(model, "a")
    masks.fill([text])
    assert allowed(model, masks.fill([(*text, stop)])) == ["$"]
    assert allowed(model, masks.fill([(*text, stop, 0)])) == ["$"]
    assert allowed(model, masks.fill([(*text, stop, 0, 0)])) == ["$"]


def test_each_prompt_has_its_own_constraint_and_as_many_rows(model: Model):
    masks = PrefixMasks([model.choice(["a"]), None, model.choice(["b"])])
    assert allowed(model, masks.fill(ids(model, "", "", ""))) == ["a", None, "b"]
    masks.restart()
    assert allowed(model, masks.fill(ids(model, *[""] * 6))) == ["a", "a", None, None, "b", "b"]
    with pytest.raises(InterlockError, match="do not divide"):
        masks.fill(ids(model, "", ""))


def test_an_output_that_breaks_its_constraint_is_an_error(model: Model):
    masks = PrefixMasks([model.choice(["ab"])])
    masks.fill(ids(model, "a"))
    with pytest.raises(InterlockError) as failed:
        masks.fill(ids(model, "ax"))
    assert failed.value.code == "matcher_failed"
    assert allowed(model, masks.fill(ids(model, "a"))) == ["b"]  # and it can go on with others


def test_constraints_of_one_vocabulary_are_needed(model: Model):
    other: Any = SimpleNamespace(vocabulary=object(), state=lambda: None)
    for constraints in ([], [None], [model.choice(["a"]), other]):
        with pytest.raises(InterlockError, match="one vocabulary"):
            PrefixMasks(constraints)
