from __future__ import annotations

import importlib.util

import pytest

from interlock.constraints.providers.registry import create_provider
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer


def test_an_unknown_engine_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(InterlockError, match="llguidance, xgrammar"):
        create_provider("none", byte_tokenizer())


@pytest.mark.skipif(importlib.util.find_spec("xgrammar") is not None, reason="the extra is installed")
def test_a_missing_extra_says_how_to_install_it() -> None:
    with pytest.raises(InterlockError) as caught:
        create_provider("xgrammar", byte_tokenizer())
    assert caught.value.code == "missing_extra"
    assert "[xgrammar]" in (caught.value.hint or "")
