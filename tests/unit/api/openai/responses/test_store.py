"""Stored responses are bounded in age, number and size, and chains are read oldest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.api.openai.responses.store import ResponseStore, StoredResponse
from interlock.config import ResponseStoreConfig
from interlock.errors import InterlockError


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def stored(name: str, previous: str | None = None, size: int = 10) -> StoredResponse:
    return StoredResponse(id=name, previous=previous, input=b"[]", output=b"[]", body=b"x" * (size - 4))


def make(**limits: object) -> tuple[ResponseStore, Clock]:
    clock = Clock()
    return ResponseStore(ResponseStoreConfig(**limits), clock), clock  # type: ignore[arg-type]


def test_what_is_saved_comes_back_until_it_is_deleted() -> None:
    store, _ = make()
    store.save(stored("a"))
    assert store.load("a") == stored("a")
    assert store.delete("a")
    assert not store.delete("a")
    assert store.load("a") is None


def test_a_chain_is_read_oldest_first() -> None:
    store, _ = make()
    for name, previous in (("a", None), ("b", "a"), ("c", "b")):
        store.save(stored(name, previous))
    assert [response.id for response in store.chain("c")] == ["a", "b", "c"]
    store.delete("a")
    with pytest.raises(InterlockError) as caught:
        store.chain("c")
    assert caught.value.param == "previous_response_id"


@pytest.mark.parametrize("limits", [{"max_responses": 2}, {"max_bytes": 25}])
def test_the_oldest_go_first(limits: dict) -> None:
    store, _ = make(**limits)
    for name in "abc":
        store.save(stored(name))
    assert [name for name in "abc" if store.load(name)] == ["b", "c"]


def test_one_that_is_too_large_is_not_kept() -> None:
    store, _ = make(max_bytes=25)
    store.save(stored("a", size=30))
    assert store.load("a") is None


def test_old_ones_are_not_found_and_then_gone() -> None:
    store, clock = make(max_age_s=100)
    store.save(stored("a"))
    clock.now += 200
    assert store.load("a") is None
    store.save(stored("b"))
    assert not store.delete("a")


def test_a_file_outlives_its_server(tmp_path: Path) -> None:
    config = ResponseStoreConfig(path=tmp_path / "responses.sqlite")
    ResponseStore(config).save(stored("a"))
    assert ResponseStore(config).load("a") == stored("a")
