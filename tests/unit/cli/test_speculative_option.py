"""The JSON of --speculative-config."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.cli.speculative import speculative_config
from interlock.config import SpeculativeConfig


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("off", None),
        ('{"method": "ngram"}', SpeculativeConfig(methods=("ngram",))),
        (
            '{"method": "ngram", "num_speculative_tokens": 7, "prompt_lookup_max": 3}',
            SpeculativeConfig(methods=("ngram",), num_speculative_tokens=7, prompt_lookup_max=3),
        ),
        (
            '{"method": ["skeleton", "ngram"], "adaptive": false}',
            SpeculativeConfig(methods=("skeleton", "ngram"), adaptive=False),
        ),
        (
            '{"method": "draft_model", "model": "small.gguf"}',
            SpeculativeConfig(methods=("draft_model",), model=Path("small.gguf")),
        ),
    ],
)
def test_what_it_says(text: str, config: SpeculativeConfig | None):
    assert speculative_config(text) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ngram", "not JSON"),
        ("[]", "a JSON object"),
        ("{}", '"method" is one of skeleton, ngram, draft_model, draft_head'),
        ('{"method": "eagle"}', '"method" is one of'),
        ('{"method": []}', '"method" is one of'),
        ('{"method": ["ngram", "ngram"]}', '"method" is one of'),
        ('{"method": "ngram", "num_speculative_tokens": 8}', "from 1 to 7, not 8"),
        ('{"method": "ngram", "num_speculative_tokens": 0}', "from 1 to 7, not 0"),
        ('{"method": "ngram", "num_speculative_tokens": true}', "not true"),
        ('{"method": "ngram", "tokens": 3}', "unknown: tokens; there are: adaptive"),
        ('{"method": "ngram", "model": "x.gguf"}', '"model"'),
        ('{"method": "draft_model"}', '"model"'),
        ('{"method": "ngram", "adaptive": 1}', '"adaptive" is true or false'),
        ('{"method": "ngram", "prompt_lookup_min": 5, "prompt_lookup_max": 3}', "prompt_lookup_min is more"),
    ],
)
def test_what_is_wrong_with_it(text: str, message: str):
    with pytest.raises(ValueError, match=r".") as refused:
        speculative_config(text)
    assert message in str(refused.value)
