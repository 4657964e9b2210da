"""Grammar engines by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from interlock.constraints.providers.base import Provider
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError


def _llguidance(tokenizer: Tokenizer) -> Provider:
    from interlock.constraints.providers.llguidance import LLGuidanceProvider

    return LLGuidanceProvider(tokenizer)


def _fake(tokenizer: Tokenizer) -> Provider:
    from interlock.constraints.providers.fake import FakeProvider

    return FakeProvider(tokenizer)


def _xgrammar(tokenizer: Tokenizer) -> Provider:
    try:
        from interlock.constraints.providers.xgrammar import XGrammarProvider
    except ImportError as error:
        raise InterlockError(
            "missing_extra",
            f"the grammar engine xgrammar is not installed: {error}",
            hint="pip install 'interlock-llm[xgrammar]'",
        ) from None
    return XGrammarProvider(tokenizer)


PROVIDERS: dict[str, Callable[[Tokenizer], Provider]] = {
    "llguidance": _llguidance,
    "xgrammar": _xgrammar,
    "fake": _fake,
}


def other_providers(tokenizer: Tokenizer) -> dict[str, Callable[[], Provider]]:
    """Makers of the engines that a request may choose instead of ours."""
    return {"xgrammar": partial(create_provider, "xgrammar", tokenizer)}


def create_provider(name: str, tokenizer: Tokenizer) -> Provider:
    """The provider of that name over ``tokenizer``'s vocabulary. Raises ``InterlockError`` that lists the names."""
    factory = PROVIDERS.get(name)
    if factory is None:
        raise InterlockError(
            "invalid_value", f"unknown grammar engine {name!r}; there are {', '.join(PROVIDERS)}"
        )
    return factory(tokenizer)
