"""A family's grammar and xgrammar's structural tag for it, followed side by side over a vocabulary of bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from interlock.constraints.bitmask import num_words
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import CompiledGrammar
from interlock.constraints.providers.registry import create_provider
from interlock.core.output_format import TextFormat
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families.base import ModelFamily
from interlock.families.differences import DIFFERENCES, RESPELLINGS, Difference, Respelling
from interlock.families.wire.constrain import ConstrainPolicy, constrain
from interlock.tokenization.byte_tokenizer import byte_tokenizer

STOP = 256
_MARK_ID = 257  # MiniMax M3's marker has to be a token
MARK = b"]<]minimax[>["


@cache
def tag(name: str, schemas: str, *, parallel: bool) -> Any:
    """xgrammar's tag of that name for a turn of calls without thinking, compiled. schemas: JSON, name to parameters."""
    import xgrammar
    from xgrammar.builtin_structural_tag import get_model_structural_tag

    functions = [{"name": name, "parameters": schema} for name, schema in json.loads(schemas).items()]
    structural_tag = get_model_structural_tag(
        name,
        tools=[{"type": "function", "function": function} for function in functions],
        tool_choice="required",
        reasoning="disabled",
        parallel_tool_calls=parallel,
        max_whitespace_cnt=1,
    )
    tokens = [bytes([byte]) for byte in range(256)] + [b"<|im_end|>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, stop_token_ids=[STOP])
    return xgrammar.GrammarCompiler(info, max_threads=1).compile_structural_tag(structural_tag)


def grammar(family: ModelFamily, schemas: str, *, parallel: bool) -> CompiledGrammar:
    """Our grammar for the same turn."""
    tools = tuple(
        Tool(name=name, parameters=json.dumps(schema)) for name, schema in json.loads(schemas).items()
    )
    context = ToolContext(
        effective_tools=tools,
        callable_tools=tools,
        tool_choice=ToolChoice(mode="required"),
        parallel_tool_calls=parallel,
        constrained=True,
    )
    spec = constrain(
        family,
        tools=context,
        output_format=TextFormat(),
        thinking="closed" if family.reasoning else "none",
        policy=ConstrainPolicy(tool_order="declared"),
    )
    assert spec is not None
    marks = (MARK.decode(),) if family.name == "minimax_m3" else ()
    tokenizer = byte_tokenizer(("<|im_end|>", *marks))
    return create_provider("llguidance", tokenizer).compile(lower(spec, tokenizer.special_tokens).grammar)


@dataclass
class Findings:
    """What differed on the way: listed kinds, and places that no listed kind explains."""

    listed: set[Difference | Respelling] = field(default_factory=set)
    others: set[str] = field(default_factory=set)


class Pair:
    """Both matchers at the same place of a turn."""

    def __init__(self, family: ModelFamily, ours: CompiledGrammar, theirs: Any, findings: Findings) -> None:
        import xgrammar

        self._written = bytearray()  # by us
        self._ours = ours.matcher()
        self._theirs = xgrammar.GrammarMatcher(theirs)
        self._row = np.zeros(num_words(_MARK_ID + 1), np.int32)
        self._their_row = xgrammar.allocate_token_bitmask(1, STOP + 1)
        self._has_mark = family.name == "minimax_m3"
        self._differences = [kind for kind in DIFFERENCES if family.name in kind.families]
        self._respellings = [kind for kind in RESPELLINGS if family.name in kind.families]
        self._respelled_at = -1
        self._findings = findings

    def step(self) -> set[int]:
        """What both allow next; what only one allows goes to the findings."""
        ours, theirs = self._masks()
        if not ours & theirs and self._respell():
            ours, theirs = self._masks()
        for by, more in (("us", ours - theirs), ("tag", theirs - ours)):
            for token_id in more:
                self._find(by, chr(token_id))
        return ours & theirs

    def push(self, text: bytes) -> bool:
        """Take ``text`` on both sides, or on neither."""
        ids = list(self._ids(text))
        if self._ours.validate(ids) < len(ids) or not self._push_theirs(text):
            return False
        self._push_ours(text)
        return True

    def _ids(self, text: bytes) -> Iterator[int]:
        parts = text.split(MARK) if self._has_mark else [text]
        for index, part in enumerate(parts):
            yield from [_MARK_ID] * bool(index)
            yield from part

    def _push_ours(self, text: bytes) -> None:
        for token_id in self._ids(text):
            self._ours.accept(token_id)
        self._written += text

    def _push_theirs(self, text: bytes) -> bool:
        for taken, byte in enumerate(text):
            if not self._theirs.accept_token(byte):
                self._theirs.rollback(taken)
                return False
        return True

    def _masks(self) -> tuple[set[int], set[int]]:
        self._ours.fill(self._row)
        self._theirs.fill_next_token_bitmask(self._their_row)
        ours = set(np.flatnonzero(np.unpackbits(self._row.view(np.uint8), bitorder="little")).tolist())
        bits = np.unpackbits(self._their_row.numpy().view(np.uint8)[0], bitorder="little")
        if _MARK_ID in ours:
            ours = ours - {_MARK_ID} | {MARK[0]}
        return ours, set(np.flatnonzero(bits[: STOP + 1]).tolist())

    def _respell(self) -> bool:
        if self._respelled_at == len(self._written):
            return False
        for kind in self._respellings:
            if self._ends(kind.where) and self._push_theirs(kind.theirs.encode()):
                self._push_ours(kind.ours.encode())
                self._respelled_at = len(self._written)
                self._findings.listed.add(kind)
                return True
        return False

    def _find(self, by: str, character: str) -> None:
        for kind in self._differences:
            if kind.by == by and (not kind.next or character in kind.next) and self._ends(kind.where):
                self._findings.listed.add(kind)
                return
        self._findings.others.add(f"{by}: {character!r} after {self._written[-60:].decode(errors='replace')!r}")

    def _ends(self, where: str) -> bool:
        text = self._written.decode(errors="replace")
        return re.search(rf"(?:{where})\Z", text, re.DOTALL) is not None
