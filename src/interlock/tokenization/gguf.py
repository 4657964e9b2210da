"""The tokenizer that a GGUF file describes in its metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE

from interlock.core.tokenizer import Vocabulary
from interlock.errors import InterlockError
from interlock.tokenization import token_bytes
from interlock.tokenization.fast_tokenizer import FastTokenizer, is_ordinary, plain_tokenizer, special_spellings
from interlock.tokenization.gguf_reader import read_metadata
from interlock.tokenization.pre_tokenizers import pre_tokenizer
from interlock.tokenization.stop_tokens import stop_ids

__all__ = ["gguf_tokenizer", "read_metadata"]

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_PREFIX = "tokenizer.ggml."


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The token list of a file. texts: as spelled there. kinds: GGUF token type per id."""

    texts: Sequence[str]
    kinds: Sequence[int]

    def without_special(self) -> _Tokens:
        """The same list with only what text may become."""
        texts = [
            text if kind in (_NORMAL, _BYTE) or (kind == _USER_DEFINED and is_ordinary(text)) else ""
            for text, kind in zip(self.texts, self.kinds, strict=True)
        ]
        return _Tokens(texts, self.kinds)

    def ids(self, *kinds: int) -> list[int]:
        return [token_id for token_id, kind in enumerate(self.kinds) if kind in kinds and self.texts[token_id]]


def gguf_tokenizer(metadata: Mapping[str, Any]) -> FastTokenizer:
    """The tokenizer of a GGUF file's metadata, of kind ``gpt2`` (byte-level BPE) or ``llama`` (SentencePiece
    BPE with byte fallback). Raises ``InterlockError`` for another kind, an unknown pre-tokenizer, or metadata
    that contradicts itself."""
    kind = metadata.get(_PREFIX + "model")
    build = _BUILDERS.get(kind) if isinstance(kind, str) else None
    if build is None:
        raise InterlockError(
            "invalid_value",
            f"the model file has a tokenizer of kind {kind!r} (tokenizer.ggml.model)",
            hint=f"supported: {', '.join(_BUILDERS)}",
        )
    return build(metadata, _tokens(metadata))


def _byte_level_bpe(metadata: Mapping[str, Any], tokens: _Tokens) -> FastTokenizer:
    words = pre_tokenizer(metadata.get(_PREFIX + "pre"))
    merges = [_merge(line) for line in _strings(metadata, "merges")]
    cut = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in words.patterns),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    full = RustTokenizer(_bpe(tokens, merges, ignore_merges=words.ignore_merges))
    full.pre_tokenizer = cut
    text_only = full
    if words.ignore_merges:  # a whole word that spells a special token would be taken as that token
        text_only = RustTokenizer(_bpe(tokens.without_special(), merges, ignore_merges=True))
        text_only.pre_tokenizer = cut
    adds_bos = metadata.get(_PREFIX + "add_bos_token", words.adds_bos)
    return _assemble(full, text_only, tokens, metadata, adds_bos=adds_bos, byte_level=True)


def _sentencepiece_bpe(metadata: Mapping[str, Any], tokens: _Tokens) -> FastTokenizer:
    scores = _numbers(metadata, "scores", len(tokens.texts))
    texts = [tokens.texts[token_id] for token_id in tokens.ids(_BYTE)]
    missing = set(token_bytes.BYTE_TOKENS).difference(texts)
    if missing:
        raise InterlockError(
            "invalid_value", f"the model's vocabulary lacks the byte tokens {', '.join(sorted(missing)[:4])}"
        )
    full = RustTokenizer(_bpe(tokens, _score_merges(tokens, scores), byte_fallback=True))
    mark = token_bytes.SPACE_MARK
    prefix = [normalizers.Prepend(mark)] if metadata.get(_PREFIX + "add_space_prefix", True) else []
    full.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", mark)])
    adds_bos = metadata.get(_PREFIX + "add_bos_token", True)
    return _assemble(full, full, tokens, metadata, adds_bos=adds_bos, byte_level=False)


_BUILDERS: dict[str, Callable[[Mapping[str, Any], _Tokens], FastTokenizer]] = {
    "gpt2": _byte_level_bpe,
    "llama": _sentencepiece_bpe,
}


def _assemble(
    full: RustTokenizer,
    text_only: RustTokenizer,
    tokens: _Tokens,
    metadata: Mapping[str, Any],
    *,
    adds_bos: bool,
    byte_level: bool,
) -> FastTokenizer:
    """Add the added tokens to ``full`` and describe the vocabulary; ``text_only`` is for plain text."""
    size = len(tokens.texts)
    turn_ends = _known_ids(metadata, size, "eos_token_id", "eot_token_id", "eom_token_id")
    bos_ids = _known_ids(metadata, size, "bos_token_id")
    control = {*tokens.ids(_UNKNOWN, _CONTROL), *turn_ends}
    ordinary = {
        token_id: _added(tokens.texts[token_id], special=False)
        for token_id in tokens.ids(_USER_DEFINED)
        if is_ordinary(tokens.texts[token_id]) and token_id not in control.union(bos_ids)
    }
    special = control.union(tokens.ids(_USER_DEFINED)).difference(ordinary)
    # Ids of padding rows have made-up names such as [PAD7]: they stay in the model, no text leads to them.
    spelled = (token_bytes.byte_level if byte_level else token_bytes.sentencepiece)(tokens.texts)
    for token_id in special:
        spelled[token_id] = tokens.texts[token_id].encode()
    for token_id in tokens.ids(_UNUSED):
        spelled[token_id] = b""
    full.add_tokens(list(ordinary.values()))
    full.add_tokens([_added(tokens.texts[token_id], special=True) for token_id in sorted(special)])
    spellings = special_spellings(spelled, special)
    stops = stop_ids(spellings, turn_ends)
    vocabulary = Vocabulary(
        tokens=tuple(spelled),
        special_ids=frozenset(special),
        control_ids=frozenset(control.union(stops)),
        stop_ids=stops,
        bos_id=next(iter(bos_ids), None) if adds_bos else None,
    )
    plain = plain_tokenizer(text_only, spellings, ordinary, byte_level=byte_level)
    return FastTokenizer(full, plain, vocabulary)


def _bpe(tokens: _Tokens, merges: list[tuple[str, str]], **options: bool) -> BPE:
    vocabulary = {text: token_id for token_id, text in enumerate(tokens.texts) if text}
    try:
        return BPE(vocab=vocabulary, merges=merges, **options)
    except Exception as error:  # the Rust library raises nothing narrower
        raise InterlockError(
            "invalid_value", f"the model's merges do not fit its vocabulary: {error}"
        ) from error


def _score_merges(tokens: _Tokens, scores: Sequence[float]) -> list[tuple[str, str]]:
    """Merges in the order SentencePiece makes them: every split of a token into two tokens, best score
    first. Two splits of one token keep the order of their ids."""
    texts = tokens.texts
    parts = {texts[token_id]: token_id for token_id in tokens.ids(_NORMAL, _USER_DEFINED)}
    merges = []
    for text, token_id in parts.items():
        for cut in range(1, len(text)):
            left = parts.get(text[:cut])
            if left is None:
                continue
            right = parts.get(text[cut:])
            if right is not None:
                merges.append((-scores[token_id], left, right))
    merges.sort()
    return [(texts[left], texts[right]) for _, left, right in merges]


def _tokens(metadata: Mapping[str, Any]) -> _Tokens:
    texts = _strings(metadata, "tokens")
    if _PREFIX + "token_type" not in metadata:
        return _Tokens(texts, [_NORMAL] * len(texts))
    return _Tokens(texts, _numbers(metadata, "token_type", len(texts)))


def _strings(metadata: Mapping[str, Any], key: str) -> list[str]:
    values = metadata.get(_PREFIX + key)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InterlockError("invalid_value", f"the model file has no list of strings {_PREFIX}{key}")
    return values


def _numbers(metadata: Mapping[str, Any], key: str, length: int) -> list[Any]:
    values = np.asarray(metadata.get(_PREFIX + key))
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise InterlockError("invalid_value", f"the model file has no list of numbers {_PREFIX}{key}")
    if len(values) != length:
        raise InterlockError(
            "invalid_value", f"the model file has {length} tokens but {len(values)} values of {_PREFIX}{key}"
        )
    result: list[Any] = values.tolist()
    return result


def _merge(line: str) -> tuple[str, str]:
    left, space, right = line[1:].partition(" ")  # a part may itself start with a space
    if not space:
        raise InterlockError("invalid_value", f"the model file has a malformed merge {line!r}")
    return line[0] + left, right


def _known_ids(metadata: Mapping[str, Any], size: int, *keys: str) -> list[int]:
    """The ids that the file gives under ``keys``, without those outside the vocabulary."""
    values: Iterable[Any] = (metadata.get(_PREFIX + key) for key in keys)
    return [value for value in values if isinstance(value, int) and 0 <= value < size]


def _added(text: str, *, special: bool) -> AddedToken:
    return AddedToken(text, normalized=False, special=special)
