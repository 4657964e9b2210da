"""The hub client against a small server that answers as a hub does."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest

from interlock.errors import InterlockError
from interlock.provision.resolve import resolve_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "/org/repo/resolve/main/model.gguf": b"GGUF" + bytes(100_000),
    "/org/repo/resolve/main/q8/big-00001-of-00002.gguf": b"GGUF first",
    "/org/repo/resolve/main/q8/big-00002-of-00002.gguf": b"GGUF second",
}


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests: list[str]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        type(self).requests.append(f"{self.command} {self.path}")
        body = FILES.get(self.path.partition("?")[0])
        if body is None:
            status = {"gated": (403, "GatedRepo"), "broken": (500, "")}.get(self.path.split("/")[2])
            code, name = status or (
                404,
                "EntryNotFound" if self.path.startswith("/org/repo/") else "RepoNotFound",
            )
            self.send_response(code)
            self.send_header("X-Error-Code", name)
            self.send_header("X-Error-Message", name)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """A running hub; gives the list of requests it got."""
    monkeypatch.chdir(tmp_path)
    Hub.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    use_endpoint(monkeypatch, server.server_port)
    monkeypatch.setattr(time, "sleep", lambda _: None)  # the client waits between tries
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    huggingface_hub.close_session()
    yield Hub.requests
    huggingface_hub.close_session()
    server.shutdown()
    thread.join(5)
    server.server_close()


def use_endpoint(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """What the client reads of HF_ENDPOINT when it is imported."""
    endpoint = f"http://127.0.0.1:{port}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


class Bytes:
    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self.closed = False

    def start(self, label: str, total_bytes: int | None) -> Bytes:
        self.total = total_bytes
        return self

    def advance(self, num_bytes: int) -> None:
        self.done += num_bytes

    def close(self) -> None:
        self.closed = True


def test_a_file_is_fetched_once_with_progress(
    hub: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    progress = Bytes()
    path = resolve_model("org/repo/model.gguf", cache=tmp_path / "cache", progress=progress)
    assert path.read_bytes() == FILES["/org/repo/resolve/main/model.gguf"]
    assert path.is_relative_to(tmp_path / "cache" / "hub")
    assert (progress.total, progress.done, progress.closed) == (100_004, 100_004, True)
    hub.clear()
    assert resolve_model("org/repo/model.gguf", cache=tmp_path / "cache") == path
    assert not [line for line in hub if line.startswith("GET")]
    assert capfd.readouterr() == ("", "")


def test_of_a_model_in_parts_all_are_fetched(hub: list[str], tmp_path: Path) -> None:
    path = resolve_model("org/repo/q8/big-00001-of-00002.gguf", cache=tmp_path / "cache")
    assert path.name == "big-00001-of-00002.gguf"
    assert path.with_name("big-00002-of-00002.gguf").read_bytes() == b"GGUF second"


FAILURES = [
    ("org/none/model.gguf", "the hub has no repository org/none"),
    ("org/repo/none.gguf", "the repository org/repo has no file none.gguf"),
    ("org/gated/model.gguf", "org/gated asks for consent"),
    ("org/broken/model.gguf", "model.gguf of org/broken"),
    ("org/a--b/model.gguf", "'org/a--b' is no repository name"),
]


@pytest.mark.parametrize(("spec", "message"), FAILURES)
def test_a_failure_says_what_and_what_to_do(hub: list[str], tmp_path: Path, spec: str, message: str) -> None:
    with pytest.raises(InterlockError, match=message) as caught:
        resolve_model(spec, cache=tmp_path / "cache")
    assert caught.value.param == "model"
    assert caught.value.code in ("model_not_found", "invalid_value")


def test_without_a_connection_a_cached_file_is_served_and_others_are_an_error(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = resolve_model("org/repo/model.gguf", cache=tmp_path / "cache")
    use_endpoint(monkeypatch, 9)
    assert resolve_model("org/repo/model.gguf", cache=tmp_path / "cache") == path
    with pytest.raises(InterlockError, match=r"cannot reach the hub for other\.gguf of org/repo"):
        resolve_model("org/repo/other.gguf", cache=tmp_path / "cache")


def test_the_endpoint_is_the_one_of_the_environment(hub: list[str], tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from interlock.provision.resolve import resolve_model;"
        "print(resolve_model('org/repo/model.gguf', cache=pathlib.Path(sys.argv[1])))"
    )
    environment = os.environ | {"HF_ENDPOINT": huggingface_hub.constants.ENDPOINT, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "cache")],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    assert Path(done.stdout.strip()).read_bytes().startswith(b"GGUF")
    assert "GET /org/repo/resolve/main/model.gguf" in hub
