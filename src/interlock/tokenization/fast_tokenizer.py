"""A tokenizer on top of Hugging Face's Rust library."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE

from interlock.core.tokenizer import Vocabulary
from interlock.tokenization import token_bytes

# The library holds the GIL while it encodes one text, but not for a batch. A batch costs half a millisecond more.
_LONG_TEXT = 4096


class FastTokenizer:
    """Encodes with two Rust tokenizers over one model: ``full`` as the model's makers have it, ``plain`` (see
    ``plain_tokenizer``) for text that must come out as exactly its own bytes. Immutable; long texts are
    encoded without the GIL."""

    __slots__ = ("_full", "_plain", "_special_tokens", "_vocabulary")

    def __init__(self, full: RustTokenizer, plain: RustTokenizer, vocabulary: Vocabulary) -> None:
        self._full = full
        self._plain = plain
        self._vocabulary = vocabulary
        self._special_tokens = special_spellings(vocabulary.tokens, vocabulary.special_ids)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def special_tokens(self) -> dict[str, int]:
        return dict(self._special_tokens)

    def encode_text(self, text: str) -> list[int]:
        """Plain text to ids, whose bytes are the text's own (normalised where the model's tokenizer does). Raises
        ``InterlockError`` for a lone surrogate."""
        return _encode(self._plain, text)

    def encode(self, text: str) -> list[int]:
        """Text with special tokens to ids. Raises ``InterlockError`` for a lone surrogate."""
        return _encode(self._full, text)

    def decode(self, ids: Sequence[int]) -> str:
        return token_bytes.decode(self._vocabulary.tokens, ids)

    def to_json(self) -> str:
        """The tokenizer as the text of a ``tokenizer.json``."""
        return self._full.to_str()


def special_spellings(tokens: Sequence[bytes], special_ids: Collection[int]) -> dict[str, int]:
    """Spelling to id of the special tokens that have one."""
    return {tokens[token_id].decode(): token_id for token_id in sorted(special_ids) if tokens[token_id]}


_HTML_TAG = re.compile(
    "</?(?:a|b|blockquote|body|br|caption|center|code|div|em|footer|h[1-6]|head|header|hr|html|i|iframe|img|li|ol|p|pre|s"
    "|span|strike|strong|sub|sup|table|tbody|td|tfoot|th|thead|title|tr|tt|u|ul)>"
)


def is_ordinary(spelling: str) -> bool:
    """Whether an added token that its file does not call special is text all the same: runs of white space and tags of
    HTML, which models write and read like any other token. Every other added token acts as a unit."""
    is_space = not spelling.replace(token_bytes.SPACE_MARK, " ").strip()
    return is_space or _HTML_TAG.fullmatch(spelling) is not None


def plain_tokenizer(
    full: RustTokenizer, special: Mapping[str, int], ordinary: Mapping[int, AddedToken], *, byte_level: bool
) -> RustTokenizer:
    """``full`` without the special tokens (by spelling): no text gives one of their ids. The ordinary added
    tokens (by id) stay. A space that ``full`` puts before a text is left out, as plain text also continues one.

    The model is shared unless its own merges can spell a special token; then it is rebuilt without them.
    """
    reachable = {
        spelling
        for spelling, token_id in special.items()
        if _spells(full.model, spelling, token_id, byte_level=byte_level)
    }
    if not reachable:
        plain = RustTokenizer(full.model)
        _copy_steps(full, plain)
        plain.add_tokens(list(ordinary.values()))
        if all(plain.token_to_id(token.content) == token_id for token_id, token in ordinary.items()):
            return plain
    return _rebuilt(full, reachable, ordinary)


def _spells(model: BPE, spelling: str, token_id: int, *, byte_level: bool) -> bool:
    """Whether the model makes ``token_id`` of ``spelling`` by itself. What happens inside a token does not
    depend on its neighbours, so if not here, then in no text."""
    text = token_bytes.to_byte_level(spelling) if byte_level else spelling
    return [token.id for token in model.tokenize(text)] == [token_id]


def _rebuilt(
    full: RustTokenizer, dropped: Collection[str], ordinary: Mapping[int, AddedToken]
) -> RustTokenizer:
    """``full`` with a model that cannot spell ``dropped``. Added tokens get the ids the model gives them."""
    data = json.loads(full.to_str())
    model = data["model"]
    ids = {full.token_to_id(spelling) for spelling in dropped}
    gone = {token for token, token_id in model["vocab"].items() if token_id in ids}
    model["vocab"] = {token: token_id for token, token_id in model["vocab"].items() if token not in gone}
    model["vocab"] |= {token.content: token_id for token_id, token in ordinary.items()}
    model["merges"] = [
        (left, right) for left, right in model["merges"] if gone.isdisjoint((left, right, left + right))
    ]
    if model.get("unk_token") in gone:
        model["unk_token"] = None
    data["added_tokens"] = []
    plain = RustTokenizer.from_str(json.dumps(data))
    _copy_steps(full, plain)
    plain.add_tokens(list(ordinary.values()))
    return plain


def _copy_steps(full: RustTokenizer, plain: RustTokenizer) -> None:
    """Give ``plain`` the normalizer and pre-tokenizer of ``full``, without what puts a space in front."""
    plain.normalizer = _edited(full.normalizer, normalizers.Sequence([]))
    plain.pre_tokenizer = _edited(full.pre_tokenizer, pre_tokenizers.Sequence([]))


def _edited(step: Any, blank: Any) -> Any:
    """A copy of ``step`` written into ``blank``, by way of the JSON that both pickle to."""
    state = _without_prefix(json.loads(step.__getstate__())) if step is not None else None
    if state is None:
        return None
    blank.__setstate__(json.dumps(state).encode())
    return blank


def _without_prefix(state: dict[str, Any]) -> dict[str, Any] | None:
    """A step's configuration without the space it puts before a text; ``None`` if that was all it did."""
    for key in ("normalizers", "pretokenizers"):
        if key in state:
            steps = (_without_prefix(step) for step in state[key])
            return state | {key: [step for step in steps if step is not None]}
    if state["type"] == "Prepend":
        return None
    never = {"prepend_scheme": "never", "add_prefix_space": False}
    return state | {key: value for key, value in never.items() if key in state}


def _encode(tokenizer: RustTokenizer, text: str) -> list[int]:
    try:
        if len(text) < _LONG_TEXT:
            encoding = tokenizer.encode(text, add_special_tokens=False)
        else:
            encoding = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]
    except TypeError:
        token_bytes.utf8(text)  # what the library means when the text is no Unicode text
        raise
    ids: list[int] = encoding.ids
    return ids
