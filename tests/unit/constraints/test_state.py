"""ConstraintState, the thinking budget and mask batches, over the fake provider."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from interlock.constraints import bitmask
from interlock.constraints.draft_plan import LegalDraft, legal_draft
from interlock.constraints.mask_batch import MaskBatch
from interlock.constraints.providers.base import Matcher, MatcherError, Provider
from interlock.constraints.providers.fake import FakeProvider
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.providers.registry import PROVIDERS, create_provider
from interlock.constraints.state import ConstraintState
from interlock.core.engine import ThinkingBudget
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
SIZE = TOKENIZER.vocabulary.size
STOPS = set(TOKENIZER.vocabulary.stop_ids)
CLOSE = (10, 11, 10, 12)


def matcher(*answers: list[int | str], provider: Provider | None = None) -> Matcher:
    return (provider or FakeProvider(TOKENIZER)).compile(json.dumps(answers)).matcher()


def allowed(row: np.ndarray) -> set[int]:
    return set(np.flatnonzero(bitmask.unpack(row, SIZE)).tolist())


def mask(state: ConstraintState) -> set[int] | None:
    row = MaskBatch(1, SIZE).fill([state])[0][0]
    return None if row is None else allowed(row)


def run(state: ConstraintState, *ids: int) -> ConstraintState:
    for token_id in ids:
        state.accept(token_id)
    return state


def test_a_state_without_matcher_allows_everything() -> None:
    state = run(ConstraintState(None), 1, 2)
    assert mask(state) is None
    assert state.is_accepting
    assert not state.is_terminated
    assert state.error is None
    state.close()


def test_a_state_with_matcher_is_the_matcher() -> None:
    state = ConstraintState(matcher([1, 2]))
    assert mask(state) == {1}
    run(state, 1, 2)
    assert state.is_accepting
    assert state.is_terminated
    assert mask(state) == STOPS
    with pytest.raises(MatcherError):
        state.accept(3)
    assert state.error == "token 3 is not allowed"
    with pytest.raises(MatcherError):
        _ = state.is_accepting


@pytest.mark.parametrize(
    ("budget", "output", "forced"),
    [
        (ThinkingBudget(max_tokens=3, close_ids=CLOSE), [], None),
        (ThinkingBudget(max_tokens=3, close_ids=CLOSE), [1, 2], None),
        (ThinkingBudget(max_tokens=3, close_ids=CLOSE), [1, 2, 3], 10),
        (ThinkingBudget(max_tokens=3, close_ids=CLOSE), [1, 2, 3, 10], 11),
        (ThinkingBudget(max_tokens=3, close_ids=CLOSE), [1, 2, 10], 11),  # the model had begun to close
        (ThinkingBudget(max_tokens=3, close_ids=CLOSE), [1, 10, 11, 10], 12),
        (ThinkingBudget(max_tokens=5, close_ids=CLOSE), [10, 11, 10, 11, 10], 12),  # overlapping beginnings
        (ThinkingBudget(max_tokens=5, close_ids=CLOSE), [10, 11, 10, 10, 11], 10),
        (ThinkingBudget(max_tokens=3, close_ids=CLOSE), [1, 2, 3, *CLOSE], None),
        (ThinkingBudget(max_tokens=9, close_ids=CLOSE), [1, *CLOSE, 2, 3, 4, 5, 6, 7, 8], None),
        (ThinkingBudget(max_tokens=0, close_ids=CLOSE), [], 10),
        (ThinkingBudget(max_tokens=1, close_ids=CLOSE, open_ids=(7, 8)), [], None),
        (ThinkingBudget(max_tokens=1, close_ids=CLOSE, open_ids=(7, 8)), [7, 8], None),
        (ThinkingBudget(max_tokens=1, close_ids=CLOSE, open_ids=(7, 8)), [7, 8, 1], 10),
        (ThinkingBudget(max_tokens=1, close_ids=CLOSE, open_ids=(7, 8)), [7, 1, 2, 3], None),  # never opened
        (ThinkingBudget(max_tokens=1, close_ids=CLOSE, open_ids=(7, 8)), [1, 7, 8, 3], None),
        (ThinkingBudget(max_tokens=1, close_ids=(9,), open_ids=(7,), reopen_ids=(5, 7)), [7, 1, 9, 5], None),
        (ThinkingBudget(max_tokens=1, close_ids=(9,), open_ids=(7,), reopen_ids=(5, 7)), [7, 1, 9, 5, 7], 9),
        (ThinkingBudget(max_tokens=3, close_ids=(9,), reopen_ids=(5, 7)), [1, 9, 5, 7, 1], 9),
        (ThinkingBudget(max_tokens=2, close_ids=CLOSE, end_ids=(7,)), [1, 7, 2, 3, 4], None),  # a call
        (ThinkingBudget(max_tokens=1, close_ids=(9,), reopen_ids=(5, 7)), [1, 9, 6, 5, 7, 1], None),
    ],
)
def test_the_closing_ids_are_forced_at_the_end_of_the_budget(
    budget: ThinkingBudget, output: list[int], forced: int | None
) -> None:
    state = run(ConstraintState(None, thinking=budget), *output)
    assert state.forced_id() == forced
    assert mask(state) == (None if forced is None else {forced})
    row = bitmask.allocate(1, SIZE)[0]
    state.fill(row)
    assert allowed(row) == (set() if forced is None else {forced})


def test_a_grammar_that_cannot_take_the_closing_id_decides() -> None:
    state = ConstraintState(matcher([1, 2, 10]), thinking=ThinkingBudget(max_tokens=1, close_ids=(10,)))
    assert mask(run(state, 1)) == {2}
    assert mask(run(state, 2)) == {10}
    assert mask(run(state, 10)) == STOPS


@pytest.mark.parametrize("name", ["fake", "llguidance"])
def test_a_batch_fills_every_row_and_a_failure_stays_in_its_row(name: str) -> None:
    provider = create_provider(name, TOKENIZER)
    texts = ["[[97, 98], [97, 99]]", "[[100]]", "[[101, 102]]"]
    grammars = {"fake": texts, "llguidance": ['start: "ab" | "ac"', 'start: "d"', 'start: "ef"']}[name]
    states: list[ConstraintState | None] = [
        ConstraintState(provider.compile(text).matcher()) for text in grammars
    ]
    failed = states[1]
    assert failed is not None
    with pytest.raises(MatcherError):
        failed.accept(1)
    ended = run(ConstraintState(provider.compile(grammars[1]).matcher()), 100, TOKENIZER.vocabulary.stop_ids[0])
    thinking = ConstraintState(
        provider.compile(grammars[2]).matcher(), thinking=ThinkingBudget(max_tokens=0, close_ids=(101,))
    )
    broken_thinking = ConstraintState(failed.matcher, thinking=ThinkingBudget(max_tokens=0, close_ids=(101,)))
    states += [None, ConstraintState(None), ended, thinking, broken_thinking]
    batch = MaskBatch(len(states), SIZE, threads=2)
    for _ in range(2):
        masks = batch.fill(states)
        found = [None if row is None else allowed(row) for (row,) in masks]
        assert found == [{97}, set(), {101}, None, None, STOPS, {101}, set()]
    assert failed.error is not None
    assert batch.fill([]) == []


def test_masks_of_all_steps_lie_in_one_buffer_and_rows_of_a_step_share_nothing() -> None:
    states = [ConstraintState(matcher([1, 2])), ConstraintState(matcher([3, 4]))]
    batch = MaskBatch(5, SIZE, threads=1)
    first = [row for masks in batch.fill(states, [[1], [3]]) for row in masks if row is not None]
    later = [row for masks in batch.fill(states, [[1], []]) for row in masks if row is not None]
    assert [row.ctypes.data for row in later] == [row.ctypes.data for row in first[:3]]
    assert len(first) == 4
    assert not any(np.shares_memory(one, other) for one, other in itertools.combinations(first, 2))


def test_an_error_while_filling_stays_in_its_row() -> None:
    states = [ConstraintState(matcher([1])), ConstraintState(matcher(["error"])), ConstraintState(matcher([2]))]
    found = [allowed(row) for (row,) in MaskBatch(3, SIZE).fill(states) if row is not None]
    assert found == [{1}, set(), {2}]
    assert [state.error for state in states] == [None, "the grammar says so", None]


def test_a_dead_end_of_the_grammar_is_an_empty_mask() -> None:
    # "a" leads into a text that nothing matches
    compiled = LLGuidanceProvider(TOKENIZER).compile('start: "x" | "a" A\nA: "b" & "c"')
    state = ConstraintState(compiled.matcher())
    assert mask(state) == {ord("a"), ord("x")}
    assert mask(run(state, ord("a"))) == set()
    assert state.error is None


def test_the_registry_lists_its_names() -> None:
    with pytest.raises(InterlockError, match=", ".join(PROVIDERS)):
        create_provider("none", TOKENIZER)


def plan_of(state: ConstraintState, *draft: int) -> list[set[int] | None]:
    rows = bitmask.allocate(len(draft) + 1, SIZE)
    return [None if row is None else allowed(row) for row in state.plan(draft, rows)]


@pytest.mark.parametrize("name", ["fake", "llguidance"])
def test_a_plan_gives_the_masks_along_the_legal_part_of_a_draft(name: str) -> None:
    text = {"fake": "[[97, 98, 99], [97, 100]]", "llguidance": 'start: "abc" | "ad"'}[name]
    state = ConstraintState(create_provider(name, TOKENIZER).compile(text).matcher())
    assert plan_of(state, 97, 98, 99) == [{97}, {98, 100}, {99}, STOPS]
    assert plan_of(state, 97, 101, 98) == [{97}, {98, 100}]
    assert plan_of(state) == [{97}]
    assert mask(run(state, 97)) == {98, 100}


def test_a_plan_follows_the_thinking_budget() -> None:
    budget = ThinkingBudget(max_tokens=2, close_ids=(10, 11))
    assert plan_of(ConstraintState(None, thinking=budget), 1, 2, 10, 11, 7) == [
        None,
        None,
        {10},
        {11},
        None,
        None,
    ]
    assert plan_of(ConstraintState(None, thinking=budget), 1, 2, 3) == [None, None, {10}]
    state = ConstraintState(matcher([1, 2, 10, 11], [1, 10]), thinking=budget)
    assert plan_of(state, 1, 2, 10, 11) == [{1}, {2, 10}, {10}, {11}, STOPS]


def test_a_guess_that_leads_into_an_error_ends_before_it() -> None:
    state = ConstraintState(matcher([97, 98, "error"], [97, 99]))
    assert plan_of(state, 97, 98, 99) == [{97}, {98, 99}]
    assert legal_draft(state, [97, 98], 7) == LegalDraft((97, 98), (False, True))
    assert state.error is None
    assert mask(run(state, 97, 99)) == STOPS
    broken = ConstraintState(matcher(["error"]))
    with pytest.raises(MatcherError):
        plan_of(broken, 97)
    batch = MaskBatch(6, SIZE)
    (first,), second = batch.fill([broken, run(ConstraintState(matcher([1, 2, 3])), 1)], [(97,), (2, 3)])
    assert first is not None
    assert not allowed(first)
    assert [allowed(row) for row in second if row is not None] == [{2}, {3}, STOPS]


@pytest.mark.parametrize(
    ("guess", "limit", "draft"),
    [
        ([97], 7, LegalDraft((97, 98, 99), (True, False, False))),
        ([97], 2, LegalDraft((97, 98), (True, False), is_complete=False)),
        ([97, 98, 5], 7, LegalDraft((97, 98, 99), (True, False, False))),
        ([97, 5, 5], 7, LegalDraft((97, 98, 99), (True, False, False))),
        ([5], 7, LegalDraft()),
        ([], 7, LegalDraft()),
    ],
)
def test_a_legal_draft_is_guessed_and_then_forced(guess: list[int], limit: int, draft: LegalDraft) -> None:
    state = ConstraintState(matcher([97, 98, 99], [100]))
    assert legal_draft(state, guess, limit) == draft
    free = legal_draft(None, guess, limit)
    assert free == LegalDraft(tuple(guess[:limit]), (True,) * len(guess[:limit]))
    assert mask(state) == {97, 100}


def test_the_forced_token_is_the_one_that_the_mask_leaves() -> None:
    budget = ThinkingBudget(max_tokens=1, close_ids=(10,))
    assert ConstraintState(None).forced_token() is None
    assert run(ConstraintState(None, thinking=budget), 1).forced_token() == 10
    assert ConstraintState(matcher([1, 2])).forced_token() == 1
    assert ConstraintState(matcher([1, 2], [3])).forced_token() is None
    assert run(ConstraintState(matcher([1], [1, 2])), 1).forced_token() is None  # it may end here
    assert ConstraintState(matcher(["error"])).forced_token() is None
