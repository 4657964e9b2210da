"""How byte-level BPE models cut a text into words before merging, by GGUF's name for it.

Each pattern is the model's own published one; patterns apply one after the other, each to the pieces the one
before left. llama.cpp approximates some of them (``gpt-4o``, ``tekken`` and ``kimi-k2``: combining marks, and
words in mixed case).
"""

from __future__ import annotations

from dataclasses import dataclass

from interlock.errors import InterlockError


@dataclass(frozen=True, slots=True, kw_only=True)
class PreTokenizer:
    """ignore_merges: a word that is a token as a whole is taken as it is. adds_bos: prompts start with BOS
    where the file does not say."""

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    adds_bos: bool = False


_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LEAD = r"[^\r\n\p{L}\p{N}]?"

_GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_DIGIT = r"\p{N}"
_LATIN_PUNCTUATION = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
_KANA_AND_HAN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_HAN_AND_HANGUL = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_SENTENCE_WORDS = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
# DeepSeek LLM lists its letters: the cased ones of Latin, Greek, Cyrillic and their relatives.
_CASED_LETTERS = (
    "A-Za-z"
    "\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5"
    "\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba"
    "\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45"
    "\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe"
    "\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc"
    "\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"
    "\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    "\U0001e900-\U0001e943"
)


def _modern(letters: str, digits: str) -> str:
    """The shape that Llama 3, Qwen and many others share."""
    return rf"{_ENGLISH}|{_LEAD}{letters}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"


def _cased(upper: str, lower: str, suffix: str) -> str:
    """Words that end where lower case turns to upper."""
    return rf"{_LEAD}{upper}*{lower}+{suffix}|{_LEAD}{upper}+{lower}*{suffix}"


_GPT2 = PreTokenizer(patterns=(_GPT2_WORDS,))
_DIGITS_THEN_GPT2 = PreTokenizer(patterns=(_DIGIT, _GPT2_WORDS))
_THREE_DIGITS = _modern(r"\p{L}+", r"\p{N}{1,3}")
_LLAMA3 = PreTokenizer(patterns=(_THREE_DIGITS,), ignore_merges=True, adds_bos=True)
_DBRX = PreTokenizer(patterns=(_THREE_DIGITS,))
_QWEN2 = PreTokenizer(patterns=(_modern(r"\p{L}+", _DIGIT),))
_QWEN35 = PreTokenizer(
    patterns=(rf"{_ENGLISH}|{_LEAD}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",)
)
_DEEPSEEK3 = PreTokenizer(
    patterns=(
        r"\p{N}{1,3}",
        _KANA_AND_HAN,
        (
            rf"{_LATIN_PUNCTUATION}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
        ),
    )
)
_GPT4O = PreTokenizer(
    patterns=(
        rf"{_cased(_UPPER, _LOWER, _ENGLISH + '?')}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}",
    )
)
_TEKKEN = PreTokenizer(
    patterns=(rf"{_cased(_UPPER, _LOWER, '')}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}",),
    ignore_merges=True,
    adds_bos=True,
)
_KIMI_UPPER = rf"{_UPPER[:-1]}&&[^\p{{Han}}]]"
_KIMI_LOWER = rf"{_LOWER[:-1]}&&[^\p{{Han}}]]"
_KIMI_K2 = PreTokenizer(
    patterns=(
        (
            rf"\p{{Han}}+|{_cased(_KIMI_UPPER, _KIMI_LOWER, _ENGLISH + '?')}|\p{{N}}{{1,3}}"
            rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
        ),
    )
)
_SENTENCES = PreTokenizer(patterns=(_SENTENCE_WORDS,))

_BY_NAMES: tuple[tuple[tuple[str, ...], PreTokenizer], ...] = (
    (("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "gigachat"), _GPT2),
    (("a.x-4.0", "mellum"), _GPT2),
    (("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"), _DIGITS_THEN_GPT2),
    (("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"), _LLAMA3),
    (("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"), _DBRX),
    (("qwen2", "deepseek-r1-qwen", "kormo", "megrez", "stablelm2", "hunyuan", "grok-2"), _QWEN2),
    (("qwen35",), _QWEN35),
    (("deepseek-v3", "hunyuan-dense"), _DEEPSEEK3),
    (("gpt-4o", "llama4", "minimax-m2"), _GPT4O),
    (("tekken",), _TEKKEN),
    (("kimi-k2",), _KIMI_K2),
    (("bloom", "poro-chat", "gpt3-finnish"), _SENTENCES),
    (("viking",), PreTokenizer(patterns=(_SENTENCE_WORDS, _DIGIT))),
    (
        ("deepseek-llm",),
        PreTokenizer(
            patterns=(
                r"[\r\n]",
                rf"\s?[{_CASED_LETTERS}]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                r"\s+$",
                _HAN_AND_HANGUL,
                r"\p{N}+",
            )
        ),
    ),
    (
        ("deepseek-coder",),
        PreTokenizer(patterns=(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN_AND_HANGUL, _DIGIT)),
    ),
    (
        ("falcon",),
        PreTokenizer(patterns=(r"[\p{P}\$\+<=>\^~\|`]+", _GPT2_WORDS, r"[0-9][0-9][0-9]")),
    ),
    (
        ("default",),
        PreTokenizer(patterns=(r"[\p{P}\$\+<=>\^~\|]+", _GPT2_WORDS, r"\p{N}+", r"[0-9][0-9][0-9]")),
    ),
    (
        ("bailingmoe", "bailingmoe2", "llada-moe"),
        PreTokenizer(
            patterns=(
                (
                    rf"'(?i:[sdmt]|ll|ve|re)|{_LEAD}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
                    r"|\s*[\r\n]|\s+(?!\S)|\s+"
                ),
            )
        ),
    ),
    (
        ("seed-coder",),
        PreTokenizer(
            patterns=(rf"{_ENGLISH}|{_LEAD}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",),
            ignore_merges=True,
        ),
    ),
)

PRE_TOKENIZERS: dict[str, PreTokenizer] = {name: value for names, value in _BY_NAMES for name in names}


def pre_tokenizer(name: object) -> PreTokenizer:
    """By the value of ``tokenizer.ggml.pre``. Raises ``InterlockError`` for one that is unknown or absent:
    a guess would cut words differently from the model's training, and nothing would show it."""
    known = PRE_TOKENIZERS.get(name) if isinstance(name, str) else None
    if known is None:
        what = "does not name its pre-tokenizer" if name is None else f"has the unknown pre-tokenizer {name!r}"
        raise InterlockError(
            "invalid_value",
            f"the model file {what} (tokenizer.ggml.pre)",
            hint=f"known: {', '.join(sorted(PRE_TOKENIZERS))}; convert the model anew with a current converter",
        )
    return known
