"""The libraries that agents are written with, unmodified, against the whole server on the embedded model.

What a small model says is of no use to anyone; that it always fits the schema, the tool or the type is what is tested.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal

import pydantic
import pytest

pytestmark = [
    pytest.mark.model,
    # Faults of the libraries, not of the server: deprecated calls, sockets that they leave to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

MODEL = "demo"
KEY = "none"


class Unit(Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Report(pydantic.BaseModel):
    """The weather in a city."""

    city: str = pydantic.Field(min_length=1, max_length=12)
    unit: Unit
    degrees: int = pydantic.Field(ge=-60, le=60)
    tags: list[Literal["sun", "rain", "snow"]] = pydantic.Field(max_length=2)


def get_weather(city: Literal["Paris", "Oslo"], unit: Literal["celsius", "fahrenheit"]) -> str:
    """Weather of a city."""
    return f"12 degrees {unit} in {city}"


@pytest.fixture(scope="module", autouse=True)
def _libraries_stay() -> Iterator[None]:
    """What the libraries hold for good (LiteLLM alone 350,000 objects) is left out of later collections: those at the
    end of the interpreter took seconds. What is garbage by then is collected first, so nothing is hidden."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def url(demo_server: Any) -> Iterator[str]:
    with demo_server(slots=4, context_tokens=2048) as url:
        yield url


class TestLangChain:
    @pytest.fixture
    def chat(self, url: str) -> Any:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model=MODEL,
            base_url=f"{url}/v1",
            api_key=KEY,
            temperature=0,
            max_completion_tokens=120,
            max_retries=0,
            stream_usage=True,
        )

    @pytest.mark.parametrize("method", ["json_schema", "function_calling"])
    def test_structured_output(self, chat: Any, method: str) -> None:
        report = chat.with_structured_output(Report, method=method).invoke("The weather in Oslo")
        assert isinstance(report, Report)

    def test_structured_output_streams(self, chat: Any) -> None:
        *_, last = chat.with_structured_output(Report).stream("The weather in Oslo")
        assert isinstance(last, Report)

    def test_bound_tools(self, chat: Any) -> None:
        bound = chat.bind_tools([get_weather], tool_choice="any", parallel_tool_calls=False)
        (call,) = bound.invoke("The weather in Paris, please").tool_calls
        assert get_weather(**call["args"]).startswith("12")

    def test_bound_tools_stream(self, chat: Any) -> None:
        chunks = list(chat.bind_tools([get_weather], tool_choice="get_weather").stream("Weather in Oslo"))
        total = chunks[0]
        for chunk in chunks[1:]:
            total += chunk
        assert {call["name"] for call in total.tool_calls} == {"get_weather"}
        assert total.usage_metadata["output_tokens"] > 0

    def test_a_turn_with_a_tool_result(self, chat: Any) -> None:
        from langchain_core.messages import HumanMessage, ToolMessage

        history: list[Any] = [HumanMessage("Weather in Paris?")]
        called = chat.bind_tools([get_weather], tool_choice="any", parallel_tool_calls=False).invoke(history)
        (call,) = called.tool_calls
        history += [called, ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"])]
        assert isinstance(chat.with_structured_output(Report).invoke(history), Report)

    async def test_asynchronous_batches(self, chat: Any) -> None:
        structured = chat.with_structured_output(Report)
        reports = await structured.abatch([f"Weather in city {number}" for number in range(4)])
        assert all(isinstance(report, Report) for report in reports)


class TestPydanticAI:
    @pytest.fixture
    def model(self, url: str) -> Any:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))

    @pytest.mark.parametrize("wrapper", ["ToolOutput", "NativeOutput"])
    async def test_typed_output(self, model: Any, wrapper: str) -> None:
        import pydantic_ai

        agent = pydantic_ai.Agent(model, output_type=getattr(pydantic_ai, wrapper)(Report), retries=0)
        result = await agent.run("The weather in Oslo", model_settings={"max_tokens": 200, "temperature": 0})
        assert isinstance(result.output, Report)

    async def test_typed_output_streams(self, model: Any) -> None:
        from pydantic_ai import Agent, NativeOutput

        agent = Agent(model, output_type=NativeOutput(Report), retries=0)
        async with agent.run_stream("Oslo", model_settings={"max_tokens": 200, "temperature": 0}) as result:
            assert isinstance(await result.get_output(), Report)

    async def test_over_responses(self, url: str) -> None:
        from pydantic_ai import Agent, NativeOutput
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        model = OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))
        agent = Agent(model, output_type=NativeOutput(Report), retries=0)
        result = await agent.run("Oslo", model_settings={"max_tokens": 200, "temperature": 0})
        assert isinstance(result.output, Report)


class TestInstructor:
    @pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA"])
    def test_response_model(self, url: str, mode: str) -> None:
        import instructor
        import openai

        with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            report = instructor.from_openai(client, mode=instructor.Mode[mode]).chat.completions.create(
                model=MODEL,
                response_model=Report,
                max_retries=0,
                max_tokens=200,
                temperature=0,
                messages=[{"role": "user", "content": "The weather in Oslo"}],
            )
        assert isinstance(report, Report)


class TestLiteLLM:
    def ask(self, url: str, **options: Any) -> Any:
        import litellm

        return litellm.completion(
            model=f"openai/{MODEL}",
            api_base=f"{url}/v1",
            api_key=KEY,
            messages=[{"role": "user", "content": "The weather in Oslo"}],
            max_tokens=200,
            temperature=0,
            num_retries=0,
            **options,
        )

    def test_response_format(self, url: str) -> None:
        answer = self.ask(url, response_format=Report)
        Report.model_validate_json(answer.choices[0].message.content)

    def test_response_format_streamed(self, url: str) -> None:
        parts = self.ask(url, response_format=Report, stream=True)
        Report.model_validate_json("".join(part.choices[0].delta.content or "" for part in parts))

    def test_tools(self, url: str) -> None:
        tool = {
            "type": "function",
            "function": {"name": "report", "parameters": Report.model_json_schema(), "description": "Report"},
        }
        answer = self.ask(url, tools=[tool], tool_choice="required", parallel_tool_calls=False)
        (call,) = answer.choices[0].message.tool_calls
        Report.model_validate_json(call.function.arguments)
