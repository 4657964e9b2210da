"""A byte tokenizer, and schemas compiled into questions: does the grammar accept this text?"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llguidance import LLMatcher, LLTokenizer
from llguidance._tokenizer import TokenizerWrapper

from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax, load_schema

EXACT = SchemaOptions(open_objects=True, property_order="any")
END = 256


class _Bytes:
    eos_token_id = END
    bos_token_id = None
    special_token_ids = (END,)
    tokens = tuple([bytes([code]) for code in range(256)] + [b"<end>"])

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


_TOKENIZER = LLTokenizer(TokenizerWrapper(_Bytes()), n_vocab=END + 1)


class Language:
    """What a compiled schema (or one terminal) accepts."""

    def __init__(self, lark: str) -> None:
        self.lark = lark
        self._matcher = LLMatcher(_TOKENIZER, lark, log_level=0)
        assert not self._matcher.is_error(), f"{self._matcher.get_error()}\n{lark[:2000]}"

    def accepts(self, text: str) -> bool:
        matcher = self._matcher.deep_copy()
        for code in text.encode():
            if not matcher.compute_bitmask()[code >> 3] >> (code & 7) & 1 or not matcher.consume_token(code):
                return False
        return matcher.is_accepting()

    def takes(self, text: str) -> bool:
        """``accepts`` without a mask for each byte."""
        matcher, data = self._matcher.deep_copy(), list(text.encode())
        return matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()

    def next_bytes(self, text: str) -> bytes:
        """The bytes that may follow ``text``."""
        matcher = self._matcher.deep_copy()
        assert matcher.try_consume_tokens(list(text.encode())) == len(text.encode())
        return bytes(code for code in _allowed(matcher) if code != END)

    def walk(self, chooser: random.Random, limit: int = 150) -> str | None:
        """A random document, ``None`` if it grew too long. Fails where nothing is allowed."""
        matcher, out = self._matcher.deep_copy(), b""
        for step in range(limit):
            allowed = _allowed(matcher)
            assert allowed, f"dead end after {out!r}"
            if END in allowed and (len(allowed) == 1 or chooser.random() < 0.6):
                return out.decode()
            codes = [code for code in allowed if code != END]
            closers = [code for code in codes if code in b'"]},:']
            plain = [code for code in codes if 32 < code < 127 and code != 92]
            liked = [code for code in codes if code in b'ab"]}01']
            pool = closers if closers and chooser.random() < 0.35 + step / limit else liked or plain or codes
            code = chooser.choice(pool)
            matcher.consume_token(code)
            out += bytes([code])
            if matcher.is_stopped():
                return out.decode()
        return None


def _allowed(matcher: LLMatcher) -> list[int]:
    bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
    return [int(code) for code in np.flatnonzero(bits[: END + 1])]


class RefusalError(Exception):
    def __init__(self, problems: tuple[Any, ...]) -> None:
        super().__init__("; ".join(f"{item.keyword} {item.pointer}: {item.reason}" for item in problems))
        self.problems = problems


def compile_language(
    schema: Any, options: SchemaOptions = EXACT, separators: tuple[str, str] = (",", ":")
) -> Language:
    compiled = compile_schema(
        load_schema(json.dumps(schema)), options, json_syntax(*separators, flexible=False), "j"
    )
    if compiled.problems:
        raise RefusalError(compiled.problems)
    return Language(f"start: {compiled.start}\n{compiled.lark}")


def dumps(value: Any, *, ascii_only: bool = False) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only)


@pytest.fixture(scope="session")
def language() -> Callable[..., Language]:
    """Compile a schema; raises ``RefusalError``."""
    return compile_language


@pytest.fixture(scope="session")
def terminal() -> Callable[..., Language]:
    """One terminal expression, and the named ones that it refers to."""
    return lambda expression, *parts: Language("\n".join([f"start: A\nA: {expression}", *parts, ""]))


@pytest.fixture(scope="session")
def refusal() -> type[RefusalError]:
    return RefusalError
