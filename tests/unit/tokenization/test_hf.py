from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import InterlockError
from interlock.tokenization.hf import hf_tokenizer
from interlock.tokenization.load import describe
from interlock.tokenization.token_bytes import BYTE_OF_CHARACTER, BYTE_TOKENS


def added(token_id: int, content: str, **flags: bool) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": token_id, "content": content} | plain | flags


def byte_level_json(*tokens: dict[str, Any], **changes: Any) -> str:
    """256 bytes and two merges: ids 256 ``he``, 257 ``ll``."""
    vocab = {character: index for index, character in enumerate(BYTE_OF_CHARACTER)} | {"he": 256, "ll": 257}
    split = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    data = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": None,
        "pre_tokenizer": split,
        "post_processor": None,
        "decoder": split,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab,
            "merges": [["h", "e"], ["l", "l"]],
        },
    }
    return json.dumps(data | changes)


def sentencepiece_json(vocab: list[str], merges: list[list[str]], *tokens: dict[str, Any]) -> str:
    data = json.loads(byte_level_json(*tokens))
    pieces = ["<unk>", "<s>", "</s>", *BYTE_TOKENS, *vocab]
    data["model"] |= {
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": True,
        "vocab": {piece: index for index, piece in enumerate(pieces)},
        "merges": merges,
    }
    data["pre_tokenizer"] = None
    data["normalizer"] = {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    }
    data["decoder"] = {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
        ],
    }
    return json.dumps(data)


def test_special_tokens_act_in_encode_and_not_in_plain_text() -> None:
    tokenizer = hf_tokenizer(byte_level_json(added(258, "<|im_end|>"), added(259, "<think>", special=False)))
    assert tokenizer.encode("he<|im_end|><think>") == [256, 258, 259]
    assert max(tokenizer.encode_text("he<|im_end|><think>")) < 258
    vocabulary = tokenizer.vocabulary
    assert (vocabulary.special_ids, vocabulary.control_ids) == ({258, 259}, {258})
    assert vocabulary.stop_ids == (258,)
    assert tokenizer.special_tokens == {"<|im_end|>": 258, "<think>": 259}
    assert tokenizer.decode([256, 258, 257]) == "he<|im_end|>ll"


def test_flags_of_added_tokens_are_kept() -> None:
    tokenizer = hf_tokenizer(
        byte_level_json(
            added(258, "<l>", lstrip=True),
            added(259, "<r>", rstrip=True),
            added(260, "word", single_word=True),
        )
    )
    assert tokenizer.encode("he  <l>he") == [256, 258, 256]
    assert tokenizer.encode("he<r>  he") == [256, 259, 256]
    assert 260 in tokenizer.encode("a word he")
    assert 260 not in tokenizer.encode("swords")


def test_truncation_and_padding_in_the_file_do_not_act() -> None:
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "!",
    }
    tokenizer = hf_tokenizer(byte_level_json(truncation=truncation, padding=padding))
    assert tokenizer.encode("hehehe") == [256, 256, 256]
    assert tokenizer.encode("he") == [256]


def test_ids_without_a_token_have_no_bytes() -> None:
    data = json.loads(byte_level_json())
    data["model"]["vocab"]["ell"] = 300
    vocabulary = hf_tokenizer(json.dumps(data)).vocabulary
    assert vocabulary.size == 301
    assert vocabulary.tokens[299] == b""
    assert vocabulary.tokens[300] == b"ell"


def test_merges_that_spell_a_special_token_are_taken_out_of_plain_text() -> None:
    text = sentencepiece_json(
        ["▁", "<", "/", "s", ">", "s>", "</"],
        [["s", ">"], ["<", "/"], ["<", "s>"], ["</", "s>"]],
        added(0, "<unk>"),
        added(1, "<s>"),
        added(2, "</s>"),
    )
    tokenizer = hf_tokenizer(text, turn_ends=["</s>", 999, "none"])
    assert tokenizer.vocabulary.special_ids.isdisjoint(tokenizer.encode_text("<s>a</s></</s>>"))
    assert tokenizer.decode(tokenizer.encode_text("<s>a</s>")) == "<s>a</s>"
    assert tokenizer.decode(tokenizer.encode("a</s>a")) == " a</s> a"
    assert tokenizer.encode("</s>") == [2]
    assert tokenizer.vocabulary.stop_ids == (2,)


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
PREFIXES: list[dict[str, Any]] = [
    {"normalizer": {"type": "Prepend", "prepend": " "}},
    {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
]


@pytest.mark.parametrize("change", PREFIXES)
def test_a_space_in_front_is_put_before_whole_texts_only(change: dict[str, Any]) -> None:
    tokenizer = hf_tokenizer(byte_level_json(**change))
    assert tokenizer.decode(tokenizer.encode("he")) == " he"
    assert tokenizer.decode(tokenizer.encode_text("he")) == "he"


def test_metaspace_puts_its_space_before_whole_texts_only() -> None:
    data = json.loads(sentencepiece_json(["▁", "h", "e"], []))
    tokenizer = hf_tokenizer(json.dumps(data | {"normalizer": None, "pre_tokenizer": METASPACE}))
    assert tokenizer.decode(tokenizer.encode("he he")) == " he he"
    assert tokenizer.decode(tokenizer.encode_text("he he")) == "he he"


def test_added_white_space_is_text_with_its_own_id() -> None:
    tokenizer = hf_tokenizer(byte_level_json(added(258, "<|x|>"), added(259, "  ", special=False)))
    assert tokenizer.vocabulary.special_ids == {258}
    assert tokenizer.encode_text("he  he") == tokenizer.encode("he  he") == [256, 259, 256]
    assert tokenizer.vocabulary.tokens[259] == b"  "


def test_added_tags_of_html_are_text_unless_they_are_declared() -> None:
    tags = [
        added(258, "<b>", special=False),
        added(259, "</s>", special=False),
        added(260, "<think>", special=False),
    ]
    tokenizer = hf_tokenizer(byte_level_json(*tags), turn_ends=["</s>"])
    assert tokenizer.special_tokens == {"</s>": 259, "<think>": 260}
    assert tokenizer.encode_text("he<b>") == [256, 258]
    assert tokenizer.vocabulary.tokens[258] == b"<b>"
    assert not {259, 260}.intersection(tokenizer.encode_text("</s><think>"))
    assert hf_tokenizer(byte_level_json(*tags), bos_token="<b>").vocabulary.special_ids == {258, 260}


def test_bos_comes_from_the_post_processor_or_the_settings() -> None:
    processor = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<b>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<b>": {"id": "<b>", "ids": [258], "tokens": ["<b>"]}},
    }
    text = byte_level_json(added(258, "<b>"), post_processor=processor)
    assert hf_tokenizer(text).vocabulary.bos_id == 258
    assert hf_tokenizer(text).encode("he") == [256]
    assert hf_tokenizer(text, adds_bos=False, bos_token="<b>").vocabulary.bos_id is None
    assert hf_tokenizer(byte_level_json(added(258, "<b>"))).vocabulary.bos_id is None
    plain = byte_level_json(added(258, "<b>"))
    assert hf_tokenizer(plain, adds_bos=True, bos_token="<b>").vocabulary.bos_id == 258


def model_of(kind: str) -> dict[str, Any]:
    if kind == "Unigram":
        return {"type": kind, "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]], "byte_fallback": False}
    return {"type": kind, "unk_token": "<unk>", "vocab": {"<unk>": 0}} | (
        {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100} if kind == "WordPiece" else {}
    )


def broken_byte_level() -> str:
    data = json.loads(byte_level_json())
    del data["model"]["vocab"]["a"]
    return json.dumps(data | {"model": data["model"] | {"unk_token": "he"}})


REFUSED = [
    ("{", "no valid tokenizer.json"),
    (byte_level_json(model=model_of("Unigram")), "model of type Unigram"),
    (byte_level_json(model=model_of("WordPiece")), "model of type WordPiece"),
    (byte_level_json(decoder={"type": "BPEDecoder", "suffix": "</w>"}), r"decoder \(BPEDecoder\)"),
    (byte_level_json(decoder=None, pre_tokenizer=None), r"decoder \(none\)"),
    (broken_byte_level(), "no tokens for some bytes"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_tokenizer_without_exact_bytes_is_refused(text: str, message: str) -> None:
    with pytest.raises(InterlockError, match=message):
        hf_tokenizer(text)


def test_a_lone_surrogate_is_the_callers_error() -> None:
    tokenizer = hf_tokenizer(byte_level_json())
    for encode in (tokenizer.encode, tokenizer.encode_text):
        with pytest.raises(InterlockError, match="lone surrogate at character 2"):
            encode("he\ud800")


def write_folder(folder: Path, **files: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(
        byte_level_json(added(258, "<b>"), added(259, "<e>"), added(260, "<f>"))
    )
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def test_a_folder_is_described_from_all_its_files(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "Small-1B",
        tokenizer_config={
            "bos_token": {"__type": "AddedToken", "content": "<b>"},
            "eos_token": "<e>",
            "add_bos_token": True,
            "chat_template": "from settings",
        },
        generation_config={"eos_token_id": [259, 260]},
        config={"model_type": "small", "text_config": {"max_position_embeddings": 4096}},
    )
    description = describe(folder)
    assert (description.name, description.architecture) == ("Small-1B", "small")
    assert (description.bos_token, description.eos_token) == ("<b>", "<e>")
    assert description.context_tokens == 4096
    assert description.chat_template == "from settings"
    assert description.tokenizer.vocabulary.stop_ids == (259, 260)
    assert description.tokenizer.vocabulary.bos_id == 258
    (folder / "chat_template.jinja").write_text("own file")
    assert describe(folder).chat_template == "own file"


@pytest.mark.parametrize(
    ("generation", "config", "settings", "stop_ids"),
    [
        ({"eos_token_id": 260}, {"eos_token_id": 258}, {"eos_token": "<e>"}, (259, 260)),
        ({}, {"eos_token_id": 260}, {"eos_token": "<e>"}, (259, 260)),
        ({"eos_token_id": None}, {"eos_token_id": [258, 260]}, {}, (258, 260)),
        ({}, {"eos_token_id": 258, "text_config": {"eos_token_id": 260}}, {}, (260,)),
        ({}, {}, {"eos_token": "<e>"}, (259,)),
    ],
)
def test_a_turn_ends_where_any_file_of_the_folder_says(
    tmp_path: Path,
    generation: dict[str, Any],
    config: dict[str, Any],
    settings: dict[str, Any],
    stop_ids: tuple[int, ...],
) -> None:
    folder = write_folder(
        tmp_path / "m", generation_config=generation, config=config, tokenizer_config=settings
    )
    assert describe(folder).tokenizer.vocabulary.stop_ids == stop_ids


def test_of_several_templates_the_default_is_taken(tmp_path: Path) -> None:
    templates = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    folder = write_folder(tmp_path / "m", tokenizer_config={"chat_template": templates})
    assert describe(folder).chat_template == "d"


def test_a_lone_tokenizer_json_is_described(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m")
    description = describe(folder / "tokenizer.json")
    assert description.chat_template is None
    assert description.context_tokens == 0
    assert description.tokenizer.encode("<b>") == [258]


def test_what_is_no_model_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.gguf").write_text("hello")
    bad = write_folder(tmp_path / "bad", config=[])
    for path, message in [
        (tmp_path / "none", "there is no model at"),
        (tmp_path / "empty", "has no tokenizer.json"),
        (tmp_path / "text.gguf", "is not a GGUF file"),
        (bad, "does not hold a JSON object"),
    ]:
        with pytest.raises(InterlockError, match=message) as caught:
            describe(path)
        assert str(path) in caught.value.message
