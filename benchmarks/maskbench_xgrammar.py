"""xgrammar's JSON Schema compiler as a peer of ``maskbench.py``, in its strictest setting: keys in declared order, one
way of spacing. Its option ``any_order`` does not hold ``required``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xgrammar

from interlock.constraints import bitmask


class XGrammar:
    """texts: bytes of each token, empty for special ones. stop_ids: at least one."""

    name = "xgrammar"

    def __init__(self, texts: Sequence[bytes], stop_ids: Sequence[int], *, open_objects: bool) -> None:
        self._info = xgrammar.TokenizerInfo(
            list(texts), vocab_type=xgrammar.VocabType.RAW, stop_token_ids=list(stop_ids)
        )
        self._stop_id = stop_ids[0]
        self._strict = not open_objects

    def compile(self, schema: Any) -> Any:
        """A compiled grammar, nothing kept of earlier schemas. Raises ``RuntimeError`` where it refuses."""
        compiler = xgrammar.GrammarCompiler(self._info, max_threads=1, cache_enabled=False)
        return compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(",", ":"), strict_mode=self._strict
        )

    def start(self, compiled: Any) -> XGrammarRun:
        return XGrammarRun(xgrammar.GrammarMatcher(compiled), self._info.vocab_size, self._stop_id)


class XGrammarRun:
    """A matcher for one instance."""

    def __init__(self, matcher: Any, vocab_size: int, stop_id: int) -> None:
        self._matcher = matcher
        self._stop_id = stop_id
        self._row = np.empty((1, -(-vocab_size // 32)), np.int32)

    def fill(self) -> None:
        self._row[:] = -1
        self._matcher.fill_next_token_bitmask(self._row)

    def allows(self, token: int) -> bool:
        return bitmask.is_allowed(self._row[0], token)

    def consume(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))

    def forced(self) -> list[int]:
        return []

    def accepts_end(self) -> bool:
        return self.consume(self._stop_id)
