"""API keys: made here, kept as hashes. One SHA-256 is enough: a key is 32 random bytes, which nobody guesses."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from interlock.errors import InterlockError

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_SHORTEST_PREFIX = 6  # hexadecimal digits


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A line of a key file. label: its comment, which is for people."""

    hash: str
    label: str
    line: int


def new_key() -> str:
    return f"il-{secrets.token_urlsafe(32)}"


def hash_of(key: str) -> str:
    """``sha256:`` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def as_hash(key_or_hash: str) -> str:
    """For configured keys only: whoever sends a hash has not shown the key."""
    return key_or_hash if _HASH.fullmatch(key_or_hash) else hash_of(key_or_hash)


def read_hashes(path: Path) -> tuple[str, ...]:
    """The hashes of a key file. Raises ``invalid_value`` as ``read_keys`` does, and for a file without a key."""
    found = tuple(key.hash for key in read_keys(path))
    if not found:  # a server that was meant to be closed must not be open
        raise InterlockError("invalid_value", f"the key file {path} has no key")
    return found


def read_keys(path: Path) -> list[StoredKey]:
    """One hash a line, ``#`` begins a comment. Raises ``invalid_value`` with the line's number for anything else,
    and never repeats what stands there."""
    found = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        text, _, comment = line.partition("#")
        text = text.strip()
        if text and not _HASH.fullmatch(text):
            raise InterlockError(
                "invalid_value",
                f"{path}:{number}: not the hash of a key",
                hint="`interlock key` makes a key and its line.",
            )
        found += [StoredKey(text, comment.strip(), number)] if text else []
    return found


def add_key(path: Path, label: str) -> str:
    """A new key, its hash appended to the file, which is made where there is none. Raises ``invalid_value``."""
    known = read_keys(path) if path.exists() else []
    if label and any(key.label == label for key in known):
        raise InterlockError("invalid_value", f"{path} has a key with the label {label!r} already")
    key = new_key()
    text = _read(path) if path.exists() else ""
    separator = "" if not text or text.endswith("\n") else "\n"
    _write(path, f"{text}{separator}{hash_of(key)}{f'  # {label}' if label else ''}\n")
    return key


def remove_key(path: Path, which: str) -> StoredKey:
    """Take out the key with the label ``which``, or whose hash begins so. Raises ``invalid_value`` unless it is exactly
    one, and where it is the last: a file without keys keeps a server from starting."""
    known = read_keys(path)
    found = [key for key in known if which in (key.label, key.hash)] or _by_prefix(known, which)
    if len(found) != 1:
        few = "no key" if not found else f"{len(found)} keys"
        raise InterlockError(
            "invalid_value", f"{path} has {few} like {which[:100]!r}", hint="`interlock key list` shows them."
        )
    if len(known) == 1:
        raise InterlockError(
            "invalid_value",
            f"it is the only key in {path}, and a server does not start with none",
            hint="Make another key first, or delete the file.",
        )
    lines = _read(path).splitlines(keepends=True)
    del lines[found[0].line - 1]
    _write(path, "".join(lines))
    return found[0]


def _by_prefix(keys: list[StoredKey], which: str) -> list[StoredKey]:
    digits = which.removeprefix("sha256:")
    long_enough = len(digits) >= _SHORTEST_PREFIX
    return [key for key in keys if long_enough and key.hash.removeprefix("sha256:").startswith(digits)]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InterlockError("invalid_value", f"the key file {path} cannot be read: {error}") from error


def _write(path: Path, text: str) -> None:
    """A server that starts meanwhile sees the old file or the new one."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError as error:
        raise InterlockError("invalid_value", f"the key file {path} cannot be written: {error}") from error
