"""Which tokens end a turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Spellings that model families use to end a turn or a document. The last lines are fill-in-the-middle
# tokens: a model that writes one in an answer has left the answer. ``</s>`` is not here: it counts where a
# file declares it as EOS, and elsewhere it is an HTML tag.
TURN_ENDS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<turn|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
)


def stop_ids(special_tokens: Mapping[str, int], declared: Iterable[int]) -> tuple[int, ...]:
    """All ids that end a turn, ascending: those the model's files declare, and special tokens with a
    well-known spelling."""
    ids = set(declared)
    ids.update(special_tokens[spelling] for spelling in TURN_ENDS if spelling in special_tokens)
    if {"<|return|>", "<|call|>", "<|end|>"} <= special_tokens.keys():
        ids.discard(special_tokens["<|end|>"])  # Harmony: ends one message of several in a turn
    return tuple(sorted(ids))
