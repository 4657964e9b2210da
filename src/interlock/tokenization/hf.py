"""The tokenizer that a Hugging Face ``tokenizer.json`` describes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE

from interlock.core.tokenizer import Vocabulary
from interlock.errors import InterlockError
from interlock.tokenization import token_bytes
from interlock.tokenization.fast_tokenizer import FastTokenizer, is_ordinary, plain_tokenizer, special_spellings
from interlock.tokenization.stop_tokens import stop_ids


def hf_tokenizer(
    tokenizer_json: Path | str,
    *,
    turn_ends: Iterable[int | str] = (),
    bos_token: str | None = None,
    adds_bos: bool | None = None,
) -> FastTokenizer:
    """The tokenizer of a ``tokenizer.json``: a path, or its text as a string.

    turn_ends: ids or spellings that other files of the model declare as ends of a turn, unknown ones are
    ignored. bos_token: its spelling. adds_bos: whether prompts start with it; ``None``: as the
    file's post-processor does. Raises ``InterlockError`` for a file that cannot be read or a tokenizer whose
    tokens do not spell every text exactly.
    """
    full = _load(tokenizer_json)
    byte_level = _is_byte_level(full)
    added = full.get_added_tokens_decoder()
    declared = _known_ids(full, turn_ends)
    ordinary = {
        token_id: token
        for token_id, token in added.items()
        if not token.special
        and is_ordinary(token.content)
        and token_id not in declared
        and token.content != bos_token
    }
    special = {token_id: token for token_id, token in added.items() if token_id not in ordinary}
    spelled = _spelled(full, byte_level=byte_level)
    for token_id, token in special.items():
        spelled[token_id] = token.content.encode()
    spellings = special_spellings(spelled, {*special, *declared})
    stops = stop_ids(spellings, declared)
    vocabulary = Vocabulary(
        tokens=tuple(spelled),
        special_ids=frozenset(spellings.values()),
        control_ids=frozenset(token_id for token_id, token in special.items() if token.special).union(stops),
        stop_ids=stops,
        bos_id=_bos_id(full, bos_token, adds_bos),
    )
    plain = plain_tokenizer(full, spellings, ordinary, byte_level=byte_level)
    return FastTokenizer(full, plain, vocabulary)


def _load(tokenizer_json: Path | str) -> RustTokenizer:
    text = (
        tokenizer_json if isinstance(tokenizer_json, str) and tokenizer_json.lstrip().startswith("{") else None
    )
    where = "the tokenizer" if text is not None else str(tokenizer_json)
    try:
        full = RustTokenizer.from_str(Path(tokenizer_json).read_text("utf-8") if text is None else text)
    except (OSError, UnicodeDecodeError) as error:
        raise InterlockError("invalid_value", f"cannot read {where}: {error}") from error
    except Exception as error:  # the Rust library raises nothing narrower
        raise InterlockError("invalid_value", f"{where} is no valid tokenizer.json: {error}") from error
    if not isinstance(full.model, BPE):
        raise InterlockError(
            "invalid_value",
            f"{where} has a model of type {type(full.model).__name__}",
            hint="supported: BPE, byte-level or with byte fallback",
        )
    full.no_truncation()
    full.no_padding()
    return full


def _is_byte_level(full: RustTokenizer) -> bool:
    """How the tokenizer turns tokens into bytes: GPT-2's alphabet (true) or SentencePiece's. Raises
    ``InterlockError`` for any other way, and when some byte of a text has no token."""
    steps = {step["type"]: step for step in _steps(full.decoder)}
    before = {step["type"] for step in _steps(full.pre_tokenizer)}
    if "ByteLevel" in steps or (not steps and "ByteLevel" in before):
        byte_level = True
        alphabet = [c for c, byte in token_bytes.BYTE_OF_CHARACTER.items() if byte in token_bytes.UTF8_BYTES]
    elif "ByteFallback" in steps and full.model.byte_fallback:
        byte_level = False
        alphabet = [*token_bytes.BYTE_TOKENS]
    else:
        names = ", ".join(steps) or "none"
        raise InterlockError(
            "invalid_value",
            f"the tokenizer's decoder ({names}) does not give the bytes of each token",
            hint="supported: ByteLevel, or SentencePiece with ByteFallback",
        )
    if full.model.unk_token is not None and any(full.model.token_to_id(token) is None for token in alphabet):
        raise InterlockError(
            "invalid_value", "the tokenizer has no tokens for some bytes, so not for every text"
        )
    return byte_level


def _steps(component: Any) -> Iterator[dict[str, Any]]:
    """The configuration of a decoder or pre-tokenizer, sequences flattened."""
    pending = [json.loads(component.__getstate__())] if component is not None else []
    while pending:
        step = pending.pop(0)
        nested = step.get("decoders") or step.get("pretokenizers")
        if nested is None:
            yield step
        else:
            pending = [*nested, *pending]


def _spelled(full: RustTokenizer, *, byte_level: bool) -> list[bytes]:
    """Bytes of each id; ``b""`` for ids without a token."""
    vocabulary = full.get_vocab(with_added_tokens=True)
    texts = [""] * (max(vocabulary.values(), default=-1) + 1)
    for text, token_id in vocabulary.items():
        texts[token_id] = text
    return (token_bytes.byte_level if byte_level else token_bytes.sentencepiece)(texts)


def _known_ids(full: RustTokenizer, tokens: Iterable[int | str]) -> list[int]:
    ids = (full.token_to_id(token) if isinstance(token, str) else token for token in tokens)
    return [token_id for token_id in ids if token_id is not None and full.id_to_token(token_id) is not None]


def _bos_id(full: RustTokenizer, bos_token: str | None, adds_bos: bool | None) -> int | None:
    if adds_bos is not None:
        return full.token_to_id(bos_token) if adds_bos and bos_token else None
    with_special: list[int] = full.encode("a").ids
    without: list[int] = full.encode("a", add_special_tokens=False).ids
    return with_special[0] if with_special[:1] != without[:1] else None
