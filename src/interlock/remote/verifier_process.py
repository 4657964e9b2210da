"""``python -m interlock.remote.verifier_process``: follows sequences with matchers of our own, until its input ends."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO

from interlock.child import private_stdout, write
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError
from interlock.constraints.providers.registry import create_provider
from interlock.errors import InterlockError
from interlock.remote.verifier_messages import (
    TO_VERIFIER,
    Close,
    Compile,
    Compiled,
    Follow,
    Followed,
    FromVerifier,
    Open,
    Ready,
    Setup,
    ToVerifier,
)
from interlock.tokenization.load import describe

_CACHE_BYTES = 256 * 1024 * 1024


def main() -> None:
    """Serve the engine on standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine decides when it ends
    requests = sys.stdin.buffer
    answers = private_stdout()
    setup = TO_VERIFIER.read(requests)
    if not isinstance(setup, Setup):
        raise SystemExit("a verifier is started by its engine")
    service = _Service(
        GrammarCompiler(
            create_provider("llguidance", describe(Path(setup.model)).tokenizer), GrammarCache(_CACHE_BYTES)
        ),
        answers,
    )
    service.answer(Ready())
    while (message := TO_VERIFIER.read(requests)) is not None:
        service.handle(message)


class _Service:
    """Compiles on threads, so that a hard grammar holds up no sequence but its own."""

    def __init__(self, compiler: GrammarCompiler, answers: BinaryIO) -> None:
        self._compiler = compiler
        self._answers = answers
        self._writing = threading.Lock()
        self._grammars: dict[int, Future[CompiledGrammar]] = {}
        self._matchers: dict[int, Matcher] = {}

    def handle(self, message: ToVerifier) -> None:
        match message:
            case Compile(ticket=ticket, constraint=constraint):
                self._compiler.prepare(constraint).add_done_callback(lambda done: self._compiled(ticket, done))
            case Open(sequence=sequence, constraint=constraint):
                self._grammars[sequence] = self._compiler.prepare(constraint)
            case Follow():
                self.answer(self._followed(message))
            case Close(sequence=sequence):
                self._grammars.pop(sequence, None)
                matcher = self._matchers.pop(sequence, None)
                if matcher is not None:
                    matcher.close()

    def answer(self, message: FromVerifier) -> None:
        with self._writing:
            write(self._answers, message)

    def _compiled(self, ticket: int, done: Future[CompiledGrammar]) -> None:
        error = done.exception()
        if isinstance(error, InterlockError):
            self.answer(Compiled(ticket, error.code, error.message))
        else:
            self.answer(Compiled(ticket) if error is None else Compiled(ticket, "compile_failed", str(error)))

    def _followed(self, message: Follow) -> Followed:
        num_taken = 0
        try:
            matcher = self._matcher(message.sequence)
            if message.only_try:
                return Followed(message.ticket, matcher.validate(message.token_ids), matcher.is_accepting)
            for token_id in message.token_ids:
                matcher.accept(token_id)
                num_taken += 1
            return Followed(message.ticket, num_taken, matcher.is_accepting)
        except (MatcherError, InterlockError) as error:
            return Followed(message.ticket, num_taken, is_accepting=False, error=str(error))

    def _matcher(self, sequence: int) -> Matcher:
        if sequence not in self._matchers:
            self._matchers[sequence] = self._grammars[sequence].result().matcher()
        return self._matchers[sequence]


if __name__ == "__main__":
    main()
