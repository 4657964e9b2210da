"""Keys at rest are hashes, and a file of them is read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import InterlockError
from interlock.settings.keys import as_hash, hash_of, new_key, read_hashes


def test_every_key_is_new_and_its_hash_does_not_contain_it() -> None:
    first, second = new_key(), new_key()
    assert first != second
    assert len(first) > 40
    assert first not in hash_of(first)
    assert as_hash(first) == hash_of(first) == as_hash(hash_of(first))


def test_a_file_has_one_hash_a_line(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# of the agents\n{hash_of('a')}  # first\n\n{hash_of('b')}\n")
    assert read_hashes(path) == (hash_of("a"), hash_of("b"))


@pytest.mark.parametrize("text", ["", "# none\n", "il-secret\n", "sha256:12\n"])
def test_a_file_without_hashes_does_not_open_the_server(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(InterlockError) as caught:
        read_hashes(path)
    assert "il-secret" not in caught.value.message


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InterlockError, match="cannot be read"):
        read_hashes(tmp_path / "none")
