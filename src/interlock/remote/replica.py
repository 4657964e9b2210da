"""One vLLM server: what it serves, whether it answers, and how much it has to do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from interlock.core.engine import EngineRequest
from interlock.errors import InterlockError
from interlock.remote.wire import COMPLETIONS, GENERATE, Chunk, Endpoint, read_event, refusal, request_body

_CONNECT_S = 5.0
_CHECK_S = 5.0
_BLOCK = 64  # tokens of a prompt that are remembered together
_MAX_BLOCKS = 50_000


class ReplicaLostError(Exception):
    """The server did not answer, or its answer broke off. reached: it has heard of the request."""

    def __init__(self, message: str, *, reached: bool = True) -> None:
        super().__init__(message)
        self.reached = reached


@dataclass(frozen=True, slots=True)
class Facts:
    """model: its name there. context_tokens: most of prompt and output together. root: where it was loaded from."""

    model: str
    context_tokens: int
    endpoint: Endpoint
    root: str


class Replica:
    """is_up: it answered when it was last heard of. problem: why it cannot be used although it answers. num_running:
    requests of ours that it is working on."""

    def __init__(self, url: str, api_key: str | None, model: str | None) -> None:
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        timeout = httpx.Timeout(None, connect=_CONNECT_S)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self.url = url.rstrip("/")
        self._client = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=timeout, limits=limits)
        self._model = model
        self._seen: OrderedDict[int, None] = (
            OrderedDict()
        )  # blocks of prompts that it has, by what precedes them too
        self.facts: Facts | None = None
        self.is_up = False
        self._num_lost = 0
        self.problem: InterlockError | None = None
        self.num_running = 0

    async def check(self) -> bool:
        """Ask whether it can serve; learn its facts anew where it could not before. An answer that is older than the
        loss of a request says nothing."""
        num_lost = self._num_lost
        try:
            answer = await self._client.get("/health", timeout=_CHECK_S)
            healthy = answer.status_code == 200
            if healthy and not self.is_up:
                self.facts = await self._learn()
                self._seen.clear()
            self.problem = None
        except (httpx.HTTPError, ReplicaLostError):
            healthy = False
        except InterlockError as error:
            healthy, self.problem = False, error
        self.is_up = healthy and num_lost == self._num_lost
        return self.is_up

    def lose(self) -> None:
        """A request of ours was lost: it is down until it answers again."""
        self.is_up = False
        self._num_lost += 1

    async def tokenize(self, text: str) -> list[int]:
        """Raises ``ReplicaLostError``."""
        assert self.facts is not None
        body = {"model": self.facts.model, "prompt": text, "add_special_tokens": False}
        answer = await self._json("POST", "/tokenize", json=body)
        ids: list[int] = answer["tokens"]
        return ids

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Chunk, None]:
        """Its answer. Closing the iterator ends the request there. Raises ``ReplicaLostError``, and the
        ``InterlockError`` of a request that it refuses."""
        assert self.facts is not None
        endpoint = self.facts.endpoint
        body = request_body(endpoint, self.facts.model, request)
        self._remember(request.prompt_ids)
        self.num_running += 1
        try:
            async with self._client.stream("POST", endpoint, json=body) as response:
                if response.status_code != 200:
                    raise _refused(response.status_code, await response.aread())
                async for line in response.aiter_lines():
                    if not line.startswith("data:"):
                        continue
                    data = line.removeprefix("data:").strip()
                    if data == "[DONE]":
                        return
                    yield read_event(endpoint, data, request.sampling.logprobs)
            raise ReplicaLostError(f"the answer of {self.url} broke off")
        except httpx.HTTPError as error:
            reached = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise ReplicaLostError(f"{self.url}: {type(error).__name__}: {error}", reached=reached) from None
        finally:
            self.num_running -= 1

    def num_known(self, prompt_ids: Sequence[int]) -> int:
        """Blocks at the beginning of the prompt that it has seen, so far as is remembered here."""
        blocks = _blocks(prompt_ids)
        return next((at for at, block in enumerate(blocks) if block not in self._seen), len(blocks))

    async def close(self) -> None:
        await self._client.aclose()

    def _remember(self, prompt_ids: Sequence[int]) -> None:
        for block in _blocks(prompt_ids):
            self._seen[block] = None
            self._seen.move_to_end(block)
        while len(self._seen) > _MAX_BLOCKS:
            self._seen.popitem(last=False)

    async def _learn(self) -> Facts:
        models = (await self._json("GET", "/v1/models"))["data"]
        names = [one["id"] for one in models]
        wanted = self._model or names[0]
        found = next((one for one in models if one["id"] == wanted), None)
        if found is None:
            raise InterlockError(
                "model_not_found", f"{self.url} does not serve {wanted}; it has {', '.join(names)}"
            )
        has_generate = (await self._client.get(GENERATE, timeout=_CHECK_S)).status_code != 404
        return Facts(
            model=wanted,
            context_tokens=int(found["max_model_len"]),
            endpoint=GENERATE if has_generate else COMPLETIONS,
            root=str(found.get("root") or ""),
        )

    async def _json(self, method: str, path: str, **settings: Any) -> Any:
        try:
            answer = await self._client.request(method, path, timeout=_CHECK_S, **settings)
        except httpx.HTTPError as error:
            raise ReplicaLostError(f"{self.url}: {error!r}") from None
        if answer.status_code != 200:
            raise InterlockError(
                "internal_error", f"{self.url}{path} answers {answer.status_code}: {answer.text[:200]}"
            )
        return answer.json()


def _blocks(prompt_ids: Sequence[int]) -> list[int]:
    """One number for each whole block, of it and all before it."""
    found, before = [], 0
    for start in range(0, len(prompt_ids) - _BLOCK + 1, _BLOCK):
        before = hash((before, tuple(prompt_ids[start : start + _BLOCK])))
        found.append(before)
    return found


def _refused(status: int, body: bytes) -> Exception:
    text = body.decode("utf-8", "replace")
    if status in (502, 503, 504):
        return ReplicaLostError(f"it answers {status}: {text[:200]}")
    try:
        error = httpx.Response(status, content=body).json()["error"]
    except (ValueError, KeyError, TypeError):
        error = {"message": text, "code": status}
    return refusal(error)
