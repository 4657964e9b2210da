"""Who goes on after the death of a worker, and in which order."""

from __future__ import annotations

from interlock.engine.streams import Stream


class Resumption:
    """Streams that a worker left behind are resumed one by one, each once the one before it has got a token:
    a request that kills workers at its first step then does so alone.

    Whoever had no token yet from the worker that died is blamed for its death, everybody if there was no such
    request; the others get half of the blame. max_worker_deaths: deaths to be blamed for until a stream is
    given up.
    """

    def __init__(self, max_worker_deaths: int) -> None:
        self._most_blame = 2 * max_worker_deaths
        self._queue: list[Stream] = []
        self._on_trial: Stream | None = None

    def worker_died(self, running: list[Stream]) -> list[Stream]:
        """Queue the streams that a worker was working on; those that are given up instead."""
        suspects = [stream for stream in running if not stream.has_token] or running
        self._on_trial = None
        for stream in running:
            stream.submitted = stream.has_token = False
            stream.blame += 2 if stream in suspects else 1
        survivors = [stream for stream in running if stream.blame < self._most_blame]
        queue = self._queue + survivors
        self._queue = sorted(queue, key=lambda stream: (stream.blame, -stream.request.priority))
        return [stream for stream in running if stream.blame >= self._most_blame]

    def next(self) -> Stream | None:
        """The stream to be resumed now, once; ``None`` if there is none, or not yet. A paused stream stays here."""
        trial = self._on_trial
        if trial is not None and not (trial.has_token or trial.closed):
            return None
        self._queue = [stream for stream in self._queue if not stream.closed]
        self._on_trial = next((stream for stream in self._queue if not stream.paused), None)
        if self._on_trial is not None:
            self._queue.remove(self._on_trial)
        return self._on_trial
