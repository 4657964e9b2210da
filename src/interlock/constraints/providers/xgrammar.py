"""xgrammar behind the provider protocol: grammars in its EBNF, ``root`` the start, and the JSON text of
structural tags. An extra: ``interlock-llm[xgrammar]``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xgrammar
from numpy.typing import NDArray

from interlock.constraints.providers.base import (
    DraftPlan,
    MatcherError,
    ParallelFiller,
    Row,
    Unguarded,
    require_rows,
)
from interlock.core.tokenizer import Tokenizer, Vocabulary
from interlock.errors import InterlockError


class XGrammarProvider:
    """Special tokens are never part of a text, as everywhere."""

    name = "xgrammar"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        vocabulary = tokenizer.vocabulary
        texts = [
            b"" if number in vocabulary.special_ids else text for number, text in enumerate(vocabulary.tokens)
        ]
        self._info: Any = xgrammar.TokenizerInfo(
            texts, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=list(vocabulary.stop_ids)
        )

    @property
    def vocabulary(self) -> Vocabulary:
        return self._tokenizer.vocabulary

    def compile(self, grammar: str) -> XGrammarGrammar:
        """See ``Provider.compile``."""
        try:
            compiler = xgrammar.GrammarCompiler(self._info, max_threads=1, cache_enabled=False)
            is_tag = grammar.lstrip().startswith("{")  # which no rule can
            compiled = (
                compiler.compile_structural_tag(_tag(grammar)) if is_tag else compiler.compile_grammar(grammar)
            )
            return XGrammarGrammar(compiled, self._tokenizer)
        except (RuntimeError, ValueError) as error:
            raise InterlockError("invalid_grammar", str(error).splitlines()[0][:500]) from None


def _tag(text: str) -> dict[str, Any]:
    """Raises ``InterlockError``."""
    tag = json.loads(text)
    if "format" not in tag:
        raise InterlockError(
            "unsupported_parameter",
            "xgrammar takes structural tags with a format, not with structures and triggers",
        )
    return {"type": "structural_tag", "format": tag["format"]}


class XGrammarGrammar:
    """A compiled grammar."""

    def __init__(self, compiled: Any, tokenizer: Tokenizer) -> None:
        self._compiled = compiled
        self._tokenizer = tokenizer

    is_spent = False

    @property
    def num_bytes(self) -> int:
        return int(self._compiled.memory_size_bytes)

    def matcher(self) -> XGrammarMatcher:
        """See ``CompiledGrammar.matcher``."""
        return XGrammarMatcher(xgrammar.GrammarMatcher(self._compiled), self._tokenizer, [])


class XGrammarMatcher(Unguarded):
    """See ``Matcher``. accepted: the tokens so far."""

    spent_by = None

    def __init__(self, native: Any, tokenizer: Tokenizer, accepted: list[int]) -> None:
        self._native = native
        self._tokenizer = tokenizer
        self._accepted = accepted
        self._stop_ids = tokenizer.vocabulary.stop_ids
        self._error: str | None = None

    @property
    def error(self) -> str | None:
        return self._error

    def fill(self, row: Row) -> None:
        self._require()
        if self._stopped:
            row[:] = 0
            for token_id in self._stop_ids:
                row.view(np.uint32)[token_id >> 5] |= np.uint32(1 << (token_id & 31))
            return
        row[:] = -1
        self._native.fill_next_token_bitmask(row.reshape(1, -1))
        unused = row.size * 32 - self._tokenizer.vocabulary.size
        if unused:
            row.view(np.uint32)[-1] &= np.uint32((1 << (32 - unused)) - 1)

    def accept(self, token_id: int) -> None:
        self._require()
        if not self._take(token_id):
            self._error = f"token {token_id} is not allowed"
            raise MatcherError(self._error)

    def validate(self, token_ids: Sequence[int]) -> int:
        self._require()
        taken = 0
        for token_id in token_ids:
            if not self._take(token_id):
                break
            taken += 1
        self.rollback(taken)
        return taken

    def rollback(self, num_tokens: int) -> None:
        self._require()
        if not 0 <= num_tokens <= len(self._accepted):
            raise ValueError(f"cannot undo {num_tokens} of {len(self._accepted)} tokens")
        if num_tokens:
            self._native.rollback(num_tokens)
            del self._accepted[len(self._accepted) - num_tokens :]

    def forced_tokens(self) -> list[int]:
        self._require()
        text = "" if self._stopped else self._native.find_jump_forward_string()
        return self._tokenizer.encode_text(text) if text else []

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> DraftPlan:
        require_rows(draft, rows)
        self.fill(rows[0])
        taken = 0
        for token_id in draft:
            if not self._take(token_id):
                break
            taken += 1
            self.fill(rows[taken])
        self.rollback(taken)
        return DraftPlan(num_valid=taken, rows=rows[: taken + 1])

    @property
    def is_accepting(self) -> bool:
        self._require()
        return self._stopped or bool(self._native.is_completed())

    @property
    def is_terminated(self) -> bool:
        self._require()
        if self._stopped:
            return True
        if not self._native.is_completed():
            return False
        row = np.zeros(-(-self._tokenizer.vocabulary.size // 32), np.int32)
        self.fill(row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        return set(allowed.tolist()) <= set(self._stop_ids)

    def parallel_filler(self, threads: int) -> ParallelFiller | None:
        del threads
        return None

    def clone(self) -> XGrammarMatcher:
        self._require()
        return XGrammarMatcher(self._native.fork(), self._tokenizer, list(self._accepted))

    def close(self) -> None:
        self._error = self._error or "closed"
        self._native = None

    @property
    def _stopped(self) -> bool:
        return bool(self._accepted) and self._accepted[-1] in self._stop_ids

    def _take(self, token_id: int) -> bool:
        if self._stopped or not self._native.accept_token(token_id):
            return False
        self._accepted.append(token_id)
        return True

    def _require(self) -> None:
        if self._error is not None:
            raise MatcherError(self._error)
