"""Our compiler against xgrammar's: where the two disagree about a document, ours is the one that is right.

The documents come with the answer; the data sets were labelled by validators."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

xgrammar = pytest.importorskip("xgrammar", reason="the extra xgrammar is not installed")

_EVERY = 1000  # schemas of MaskBench


def cases(shared: Path) -> Iterator[tuple[Any, list[tuple[Any, bool]]]]:
    for line in (shared / "cases" / "keyword_cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        labelled = [(item, True) for item in case["valid"]] + [(item, False) for item in case["invalid"]]
        yield case["schema"], labelled
    for path in sorted((shared / "data" / "maskbench").glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for index, line in enumerate(lines):
                if index % _EVERY == 0:
                    case = json.loads(line)
                    yield case["schema"], [(item["data"], item["valid"]) for item in case["tests"]]


class Theirs:
    def __init__(self) -> None:
        texts = [bytes([byte]) for byte in range(256)] + [b"</s>"]
        info = xgrammar.TokenizerInfo(texts, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, schema: Any) -> Any:
        return self._compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(",", ":"), strict_mode=False
        )

    @staticmethod
    def accepts(compiled: Any, text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(token_id) for token_id in (*text.encode(), 256))


def test_where_they_disagree_ours_accepts_nothing_invalid(shared, language, refusal, capfd) -> None:
    theirs = Theirs()
    disagreements: list[tuple[str, str, str]] = []
    for schema, documents in cases(shared):
        try:
            mine, other = language(schema), theirs.compile(schema)
        except (refusal, RuntimeError):
            continue
        for document, valid in documents:
            text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
            accepted = mine.accepts(text)
            if accepted == theirs.accepts(other, text):
                continue
            right = "ours" if accepted == valid else "theirs"
            disagreements.append((right, json.dumps(schema)[:200], text[:100]))
    capfd.readouterr()  # what the other compiler prints
    for found in disagreements:
        print(*found)
    assert [found for found in disagreements if found[0] == "ours"], "nothing was compared"
    assert [found for found in disagreements if found[0] == "theirs"] == []
