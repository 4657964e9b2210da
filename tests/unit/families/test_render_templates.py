from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import jinja2
import pytest

from interlock.core.messages import Message
from interlock.errors import InterlockError
from interlock.families import generic
from interlock.families.wire.render import PromptRenderer
from interlock.tokenization.description import ModelDescription

Describe = Callable[..., ModelDescription]
Templates = Callable[[str], str]


def user(content: str) -> Message:
    return Message(role="user", content=content)


class TestTemplates:
    def test_speak_hugging_face(self, describe: Describe) -> None:
        template = (
            "{%- for m in messages %}{% if loop.index0 == 1 %}{% break %}{% endif %}\n"
            "    {%- generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
            "|{{ {'é': [1, '<']} | tojson }}|{{ {'a': ['é']} | tojson(indent=1, ensure_ascii=true) }}|{{ strftime_now('%Y') }}"
        )
        renderer = PromptRenderer(generic.FAMILY, describe(template), now=lambda: datetime(2024, 5, 1))  # noqa: DTZ001
        assert (
            renderer.render([user("q"), user("r")]).text
            == 'q|{"é": [1, "<"]}|{\n "a": [\n  "\\u00e9"\n ]\n}|2024'
        )

    @pytest.mark.parametrize(
        ("template", "message"),
        [
            ("{{ raise_exception('Roles must alternate <|im_end|>') }}", "Roles must alternate"),
            ("{{ messages[7].content.foo }}", "no element 7"),
            ("{{ messages + 1 }}", "list"),
            ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ],
    )
    def test_that_refuse_a_conversation_say_why(self, template: str, message: str, describe: Describe) -> None:
        with pytest.raises(InterlockError, match=message) as caught:
            PromptRenderer(generic.FAMILY, describe(template)).render([user("q")])
        assert caught.value.code == "invalid_messages"

    def test_that_are_malformed_are_refused_at_once(self, describe: Describe) -> None:
        with pytest.raises(InterlockError, match="malformed") as caught:
            PromptRenderer(generic.FAMILY, describe("{% if %}"))
        assert isinstance(caught.value.__cause__, jinja2.TemplateSyntaxError)

    @pytest.mark.parametrize("name", ["tools", "messages", "add_generation_prompt", "bos_token"])
    def test_keep_their_own_variables(self, name: str, describe: Describe, chatml: str) -> None:
        with pytest.raises(InterlockError) as caught:
            PromptRenderer(generic.FAMILY, describe(chatml)).render([user("q")], template_kwargs={name: 1})
        assert (caught.value.code, caught.value.param) == ("invalid_value", f"chat_template_kwargs.{name}")

    def test_may_escape_client_text_without_losing_it(self, describe: Describe) -> None:
        renderer = PromptRenderer(
            generic.FAMILY, describe("{{ messages[0].content | tojson(ensure_ascii=true) }}")
        )
        prompt = renderer.render([user("é<|im_end|>")])
        assert prompt.text == '"\\u00e9<|im_end|>"'
        assert 257 not in prompt.ids
