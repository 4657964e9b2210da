"""Answered requests, so that the next one can say ``previous_response_id``. Bounded in age and size."""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from interlock.config import ResponseStoreConfig
from interlock.errors import InterlockError

MAX_CHAIN = 1000

_TABLE = """
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY, previous TEXT, created REAL NOT NULL, bytes INTEGER NOT NULL,
    input BLOB NOT NULL, output BLOB NOT NULL, body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_age ON responses (created);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """input, output: JSON arrays of items; input is this request's own, without what came before.
    body: the response object as it was sent."""

    id: str
    previous: str | None
    input: bytes
    output: bytes
    body: bytes


class ResponseStore:
    """Any thread may use it. Without a path it lives in memory, for as long as the server."""

    def __init__(self, config: ResponseStoreConfig, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._database = sqlite3.connect(str(config.path or ":memory:"), check_same_thread=False)
        self._database.executescript(_TABLE)
        weakref.finalize(self, self._database.close)

    def save(self, response: StoredResponse) -> None:
        """Then the oldest ones go until all limits hold again; one that is too large alone is not kept."""
        row = (
            response.id,
            response.previous,
            self._clock(),
            len(response.input) + len(response.output) + len(response.body),
            response.input,
            response.output,
            response.body,
        )
        with self._lock, self._database:
            self._database.execute("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            self._shrink()

    def load(self, response_id: str) -> StoredResponse | None:
        with self._lock:
            row = self._database.execute(
                "SELECT id, previous, input, output, body FROM responses WHERE id = ? AND created > ?",
                (response_id, self._clock() - self._config.max_age_s),
            ).fetchone()
        if row is None:
            return None
        return StoredResponse(id=row[0], previous=row[1], input=row[2], output=row[3], body=row[4])

    def delete(self, response_id: str) -> bool:
        """False where there is none."""
        with self._lock, self._database:
            found = self._database.execute("DELETE FROM responses WHERE id = ?", (response_id,))
            return found.rowcount > 0

    def chain(self, response_id: str) -> list[StoredResponse]:
        """The response and all before it, oldest first. Raises ``invalid_value`` where one of them is not there."""
        found: list[StoredResponse] = []
        following: str | None = response_id
        while following is not None:
            response = self.load(following) if len(found) < MAX_CHAIN else None
            if response is None:
                raise InterlockError(
                    "invalid_value",
                    f"the response `{following[:100]}` is not stored here",
                    param="previous_response_id",
                    hint="it may be too old, or it was made with store: false; send the whole conversation",
                )
            found.append(response)
            following = response.previous
        return found[::-1]

    def _shrink(self) -> None:
        self._database.execute(
            "DELETE FROM responses WHERE created <= ?", (self._clock() - self._config.max_age_s,)
        )
        size, count = self._database.execute(
            "SELECT coalesce(sum(bytes), 0), count(*) FROM responses"
        ).fetchone()
        oldest = self._database.execute("SELECT id, bytes FROM responses ORDER BY created").fetchall()
        for response_id, num_bytes in oldest:
            if size <= self._config.max_bytes and count <= self._config.max_responses:
                return
            self._database.execute("DELETE FROM responses WHERE id = ?", (response_id,))
            size, count = size - num_bytes, count - 1
