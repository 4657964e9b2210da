"""``interlock serve`` over TLS with JSON logs: what is on the wire and what is in the log."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.model

EXIT_S = 60
SECRET = "xylophone-4711"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key


def serve(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "interlock", "serve", "--port", "0", "--threads", "1", "--slots", "2"]
    return subprocess.Popen(
        [*command, "--context-tokens", "1024", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def conversation(
    demo_model: Path, certificate: tuple[Path, Path]
) -> tuple[list[httpx.Response], list[dict[str, Any]]]:
    """Answers of a server over TLS, and its log."""
    files = ("--ssl-certfile", str(certificate[0]), "--ssl-keyfile", str(certificate[1]))
    process = serve(str(demo_model), "--served-name", "m", "--log-format", "json", *files)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert url.startswith("https://"), process.communicate(timeout=EXIT_S)
        context = ssl.create_default_context(cafile=str(certificate[0]))
        with httpx.Client(base_url=url, verify=context, timeout=60) as client:
            answers = [client.post("/v1/chat/completions", json=body) for body in bodies()]
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https", "http"))
        process.terminate()
        _, log = process.communicate(timeout=EXIT_S)
    finally:
        process.kill()
    return answers, [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def bodies() -> list[dict[str, Any]]:
    ask = {"model": "m", "messages": [{"role": "user", "content": SECRET}], "max_tokens": 8, "temperature": 0}
    property_ = {SECRET: {"type": "string", "enum": [SECRET], "x-note": SECRET}}
    schema = {"type": "object", "properties": property_, "required": [SECRET], "additionalProperties": False}
    tool = {"type": "function", "function": {"name": SECRET, "description": SECRET, "parameters": schema}}
    held = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    return [
        ask,
        {**ask, "response_format": held, "max_tokens": 60},
        {**ask, "tools": [tool], "tool_choice": "required", "max_tokens": 60},
        {**ask, "tools": [tool], "tool_choice": SECRET},
        {**ask, "structured_outputs": {"regex": f"({SECRET}"}},
    ]


def test_answers_come_over_tls(conversation: Any) -> None:
    answers, _ = conversation
    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 400]
    assert SECRET in answers[1].text


def test_each_request_has_a_record_with_fields(conversation: Any) -> None:
    _, log = conversation
    ended = [record for record in log if "request_id" in record]
    assert [record["constraint"] for record in ended] == ["", "json_schema", "tools"]
    for record in ended:
        assert (record["level"], record["model"]) == ("info", "m")
        assert record["time"].endswith("Z")
        assert min(record["prompt_tokens"], record["completion_tokens"], record["seconds"]) > 0


def test_no_text_of_a_conversation_or_of_a_schema_is_in_the_log(conversation: Any) -> None:
    _, log = conversation
    assert log
    assert SECRET not in json.dumps(log)


@pytest.mark.parametrize("given", ["--ssl-certfile", "both, exchanged"])
def test_files_that_are_no_pair_keep_it_from_starting(
    demo_model: Path, certificate: tuple[Path, Path], given: str
) -> None:
    cert, key = map(str, certificate)
    options = [given, cert] if given.startswith("--") else ["--ssl-certfile", key, "--ssl-keyfile", cert]
    process = serve(str(demo_model), *options)
    _, errors = process.communicate(timeout=EXIT_S)
    assert process.returncode == 1
    assert "--ssl-keyfile" in errors or "PEM" in errors
    assert "Traceback" not in errors
