"""The environment is read in one place, and a bad value is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import env


def test_the_cache_folder_can_be_moved() -> None:
    assert env.cache_dir({"INTERLOCK_CACHE": "/somewhere"}) == Path("/somewhere")
    assert env.cache_dir({}).name == "interlock"


def test_keys_are_separated_by_commas() -> None:
    assert env.api_keys({"INTERLOCK_API_KEY": "a, b,,"}) == ("a", "b")
    assert env.api_keys({}) == ()


def test_a_log_level_is_one_of_four() -> None:
    assert env.log_level({}) == "info"
    assert env.log_level({"INTERLOCK_LOG_LEVEL": "DEBUG"}) == "debug"
    with pytest.raises(ValueError, match="INTERLOCK_LOG_LEVEL='loud'"):
        env.log_level({"INTERLOCK_LOG_LEVEL": "loud"})


def test_threads_of_a_worker_do_not_wait_long_for_each_other_unless_told_to():
    assert env.of_a_worker({"A": "b"}) == {"A": "b", "GOMP_SPINCOUNT": "100000"}
    assert env.of_a_worker({"GOMP_SPINCOUNT": "7"}) == {"GOMP_SPINCOUNT": "7"}
    assert env.of_a_worker({"OMP_WAIT_POLICY": "active"}) == {"OMP_WAIT_POLICY": "active"}
