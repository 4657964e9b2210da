"""From a model's files to its description."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlock.errors import InterlockError
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.gguf import gguf_tokenizer, read_metadata
from interlock.tokenization.hf import hf_tokenizer

_HINT = "give a .gguf file, a Hugging Face model folder, or a tokenizer.json"


def describe(path: Path) -> ModelDescription:
    """The description of a GGUF file, a Hugging Face folder, or a single ``tokenizer.json``. No weights are
    read. Raises ``InterlockError`` that says what is wrong with the path or the file."""
    if path.is_dir():
        if not (path / "tokenizer.json").is_file():
            raise InterlockError("invalid_value", f"the folder {path} has no tokenizer.json", hint=_HINT)
        return _describe_folder(path)
    if not path.is_file():
        raise InterlockError("invalid_value", f"there is no model at {path}", hint=_HINT)
    if path.suffix == ".json":
        return _describe_folder(path.parent, path.name)
    return _describe_gguf(path)


def _describe_gguf(path: Path) -> ModelDescription:
    metadata = read_metadata(path)
    tokenizer = gguf_tokenizer(metadata)
    architecture = str(metadata.get("general.architecture", ""))

    def spelling(key: str) -> str:
        token_id = metadata.get(f"tokenizer.ggml.{key}")
        tokens = tokenizer.vocabulary.tokens
        return (
            tokens[token_id].decode("utf-8", "replace")
            if isinstance(token_id, int) and 0 <= token_id < len(tokens)
            else ""
        )

    template = metadata.get("tokenizer.chat_template")
    return ModelDescription(
        tokenizer=tokenizer,
        architecture=architecture,
        name=str(metadata.get("general.name", "")),
        chat_template=template if isinstance(template, str) and template else None,
        context_tokens=_count(metadata.get(f"{architecture}.context_length")),
        bos_token=spelling("bos_token_id"),
        eos_token=spelling("eos_token_id"),
    )


def _describe_folder(folder: Path, tokenizer_json: str = "tokenizer.json") -> ModelDescription:
    settings = _read_json(folder / "tokenizer_config.json")
    special_map = _read_json(folder / "special_tokens_map.json")
    model = _read_json(folder / "config.json")
    text_model = model.get("text_config", model)
    bos_token = _spelling(settings.get("bos_token") or special_map.get("bos_token"))
    eos_token = _spelling(settings.get("eos_token") or special_map.get("eos_token"))
    declared = _read_json(folder / "generation_config.json").get("eos_token_id")
    if declared is None:
        declared = text_model.get("eos_token_id", model.get("eos_token_id"))
    turn_ends = declared if isinstance(declared, list) else [declared]
    adds_bos = settings.get("add_bos_token")
    tokenizer = hf_tokenizer(
        folder / tokenizer_json,
        turn_ends=[*(token for token in turn_ends if isinstance(token, int)), eos_token],
        bos_token=bos_token,
        adds_bos=adds_bos if isinstance(adds_bos, bool) else None,
    )
    return ModelDescription(
        tokenizer=tokenizer,
        architecture=str(model.get("model_type", "")),
        name=folder.resolve().name,
        chat_template=_chat_template(folder, settings),
        context_tokens=_count(text_model.get("max_position_embeddings") or settings.get("model_max_length")),
        bos_token=bos_token,
        eos_token=eos_token,
    )


def _chat_template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """The template of its own file wins over the one in the tokenizer's settings, as in transformers."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text("utf-8")
    template = _read_json(folder / "chat_template.json").get("chat_template") or settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    return template if isinstance(template, str) and template else None


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file of the model; empty when there is no such file."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InterlockError("invalid_value", f"cannot read {path}: {error}") from error
    if not isinstance(value, dict):
        raise InterlockError("invalid_value", f"{path} does not hold a JSON object")
    return value


def _spelling(token: Any) -> str:
    """A token's spelling, written as a string or as an added token's fields."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _count(value: Any) -> int:
    """A number of tokens; 0 for none and for the huge numbers that stand for none."""
    return value if isinstance(value, int) and 0 < value < 2**31 else 0
