"""From what a user calls a model to a path on this machine."""

from __future__ import annotations

import re
from pathlib import Path

from interlock.errors import InterlockError
from interlock.provision.demo import demo_model
from interlock.provision.hub import hub_file
from interlock.provision.progress import Progress
from interlock.tokenization.gguf_reader import MAGIC

DEMO = "demo"
FORMS = "a .gguf file, a model folder, org/repo/file.gguf on the hub, or demo"

_HUB = re.compile(r"(?P<repo>[\w-][\w.-]*/[\w-][\w.-]*)(?:/(?P<file>.+))?")


def resolve_model(spec: str, *, cache: Path, progress: Progress | None = None) -> Path:
    """Path of the model ``spec`` names: ``demo``, something on this machine (which comes first), or a file on
    the hub, fetched into ``cache``. Raises ``InterlockError`` that names what is wrong."""
    if spec == DEMO:
        return demo_model(cache, progress)
    if not spec:
        raise _wrong("a model has to be named")
    path = Path(spec).expanduser()
    if path.is_dir():
        return _in_folder(path)
    if path.exists():
        return _checked(path)
    hub = _HUB.fullmatch(spec)
    if hub is None or (hub["file"] is None and spec.endswith(".gguf")):
        raise _wrong(f"there is no model at {spec}")
    if hub["file"] is None:
        raise _wrong(f"{spec} is neither a path here nor a file on the hub; for a repository say which file")
    if not spec.endswith(".gguf"):
        raise _wrong(f"{spec} is no path here, and of the hub only .gguf files are served")
    return hub_file(hub["repo"], hub["file"], cache=cache, progress=progress)


def _in_folder(folder: Path) -> Path:
    if (folder / "tokenizer.json").is_file():
        return folder
    files = sorted(folder.glob("*.gguf"))
    if len(files) == 1:
        return _checked(files[0])
    found = (
        f"holds {len(files)} .gguf files; name one"
        if files
        else "holds neither tokenizer.json nor a .gguf file"
    )
    raise _wrong(f"the folder {folder} {found}")


def _checked(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise _wrong(f"cannot read {path}: {error.strerror}") from error
    if magic != MAGIC:
        raise _wrong(f"{path} is not a GGUF file")
    return path


def _wrong(message: str) -> InterlockError:
    return InterlockError("invalid_value", message, param="model", hint=f"give {FORMS}")
