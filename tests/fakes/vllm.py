"""A vLLM that plays a script over HTTP: its endpoints with ids in and out, and the ways in which it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from interlock.core.tokenizer import Tokenizer as InterlockTokenizer
from interlock.tokenization.token_bytes import BYTE_OF_CHARACTER

Say = Callable[[dict[str, Any]], Sequence[int]]
Write = Callable[[bytes], Awaitable[None]]


@dataclass
class FakeVllm:
    """say: the ids of an answer, by the body of the request. refuse: the message of a 400, by the grammar.
    break_after: tokens after which the connection is cut, once for each number in the list.
    wait: is awaited before each token. requests: bodies, in order. endpoint: which of the two it has."""

    tokenizer: InterlockTokenizer
    say: Say
    refuse: Callable[[str], str | None] = lambda grammar: None
    endpoint: str = "/inference/v1/generate"
    context_tokens: int = 8192
    break_after: list[int] = field(default_factory=list)
    healthy: bool = True
    wait: Callable[[], Awaitable[None]] | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    num_running: int = 0
    num_aborted: int = 0
    port: int = 0
    _server: asyncio.Server | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Also again after a ``stop``, at the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def until(self, is_so: Callable[[FakeVllm], bool]) -> None:
        """Wait for what the counters say."""
        async with self._changed:
            await self._changed.wait_for(lambda: is_so(self))

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                method, path, *_ = head.decode().split(" ", 2)
                lengths = [
                    line.split(b":")[1] for line in head.lower().split(b"\r\n") if b"content-length" in line
                ]
                body = await reader.readexactly(int(lengths[0])) if lengths else b""
                await self._answer(method, path, json.loads(body or b"{}"), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(
        self, method: str, path: str, body: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if method == "POST" and path == self.endpoint:
            self.requests.append(body)
            await self._generate(body, reader, writer)
            return
        if path == "/health":
            status, answer = (200 if self.healthy else 503), {}
        elif path == "/v1/models":
            status, answer = (
                200,
                {"data": [{"id": "m", "max_model_len": self.context_tokens, "root": "/nowhere"}]},
            )
        elif path == "/tokenize":
            status, answer = 200, {"tokens": self.tokenizer.encode(body["prompt"])}
        else:
            status, answer = (405 if path == self.endpoint else 404), {}
        text = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (status, len(text)) + text)
        await writer.drain()

    async def _generate(
        self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        sampling = body.get("sampling_params", body)
        grammar = sampling.get("structured_outputs", {}).get("grammar", "")
        writer.write(b"HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

        async def event(data: str) -> None:
            line = f"data: {data}\n\n".encode()
            writer.write(b"%x\r\n" % len(line) + line + b"\r\n")
            await writer.drain()

        problem = self.refuse(grammar)
        if problem is not None:
            await event(json.dumps({"error": {"message": problem, "type": "BadRequestError", "code": 400}}))
        else:
            await self._count(1)
            hearing = asyncio.ensure_future(reader.read(1))  # a client that goes away closes the connection
            speaking = asyncio.ensure_future(self._speak(body, sampling, event))
            try:
                await asyncio.wait({hearing, speaking}, return_when=asyncio.FIRST_COMPLETED)
                if not speaking.done():
                    self.num_aborted += 1
                    raise ConnectionError
                speaking.result()
            finally:
                await self._count(-1)
                for task in (hearing, speaking):
                    task.cancel()
                await asyncio.gather(hearing, speaking, return_exceptions=True)
        await event("[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _count(self, change: int) -> None:
        async with self._changed:
            self.num_running += change
            self._changed.notify_all()

    async def _speak(
        self, body: dict[str, Any], sampling: dict[str, Any], event: Callable[[str], Awaitable[None]]
    ) -> None:
        said, stop_ids = list(self.say(body)), sampling["stop_token_ids"]
        broken = self.break_after.pop(0) if self.break_after else None
        count = 0
        for count, token_id in enumerate(said[: sampling["max_tokens"]], 1):
            if broken is not None and count > broken:
                raise ConnectionError
            if self.wait is not None:
                await self.wait()
            ends = token_id in stop_ids
            reason = "stop" if ends else "length" if count == sampling["max_tokens"] else None
            await event(
                json.dumps({"choices": [{"index": 0, "token_ids": [token_id], "finish_reason": reason}]})
            )
            if ends:
                break
        usage = {"completion_tokens": count, "prompt_tokens_details": {"cached_tokens": 1}}
        await event(json.dumps({"choices": [], "usage": usage}))


def write_byte_tokenizer(folder: Path, tokenizer: InterlockTokenizer) -> Path:
    """A ``tokenizer.json`` with the same ids as a byte tokenizer of ours, which has no file."""
    characters = {byte: character for character, byte in BYTE_OF_CHARACTER.items()}
    whole = Tokenizer(BPE(vocab={characters[byte]: byte for byte in range(256)}, merges=[]))
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    whole.decoder = decoders.ByteLevel()
    specials = sorted(tokenizer.special_tokens.items(), key=lambda item: item[1])
    whole.add_tokens([AddedToken(text, special=True, normalized=False) for text, _ in specials])
    path = folder / "tokenizer.json"
    whole.save(str(path))
    return path
