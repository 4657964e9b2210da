"""Keys and their hashes. A key is 32 random bytes, so one pass of SHA-256 is enough: there is nothing to guess."""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path

from interlock.errors import InterlockError

_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def new_key() -> str:
    return f"il-{secrets.token_urlsafe(32)}"


def hash_of(key: str) -> str:
    """``sha256:`` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def as_hash(key_or_hash: str) -> str:
    """For configured keys only: whoever sends a hash has not shown the key."""
    return key_or_hash if _HASH.fullmatch(key_or_hash) else hash_of(key_or_hash)


def read_hashes(path: Path) -> tuple[str, ...]:
    """One hash a line, ``#`` begins a comment. Raises ``invalid_value`` with the line's number for anything else,
    and never repeats what stands there."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InterlockError("invalid_value", f"the key file {path} cannot be read: {error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text and not _HASH.fullmatch(text):
            raise InterlockError(
                "invalid_value",
                f"{path}:{number}: not the hash of a key",
                hint="`interlock key` makes a key and its line.",
            )
        found += [text] if text else []
    if not found:  # a server that was meant to be closed must not be open
        raise InterlockError("invalid_value", f"the key file {path} has no key")
    return tuple(found)
