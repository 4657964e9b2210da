"""Model files from a Hugging Face hub: the endpoint, token and offline switch are that library's own
(``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.utils.tqdm import tqdm

from interlock.errors import InterlockError
from interlock.provision.progress import NoProgress, Progress

_PART_OF_SEVERAL = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf")


def hub_file(repo: str, filename: str, *, cache: Path, progress: Progress | None) -> Path:
    """Path of ``filename`` in the repository ``org/name``, fetched into ``cache`` unless it is there. Of a
    model split into parts all are fetched, and the first is returned. Raises ``InterlockError`` when it cannot be
    had."""
    names = _all_parts(filename)
    paths = [_fetch(repo, name, cache / "hub", progress or NoProgress()) for name in names]
    return paths[0]


def _all_parts(filename: str) -> list[str]:
    split = _PART_OF_SEVERAL.fullmatch(filename)
    if split is None:
        return [filename]
    count = int(split["parts"])
    return [f"{split['stem']}-{part:05d}-of-{count:05d}.gguf" for part in range(1, count + 1)]


def _fetch(repo: str, filename: str, folder: Path, progress: Progress) -> Path:
    where = f"{filename} of {repo}"
    try:
        return Path(hf_hub_download(repo, filename, cache_dir=folder, tqdm_class=_bar_class(progress)))
    except HFValidationError as error:
        raise InterlockError(
            "invalid_value", f"{repo!r} is no repository name: {error}", param="model"
        ) from error
    except GatedRepoError as error:
        raise _failed(f"{repo} asks for consent to its terms", "agree on its page and set HF_TOKEN") from error
    except LocalEntryNotFoundError as error:
        raise _failed(
            f"cannot reach the hub for {where}, and it is not in the cache",
            "check the connection and HF_ENDPOINT",
        ) from error
    except RepositoryNotFoundError as error:
        raise _failed(
            f"the hub has no repository {repo}, or it is private", "private ones need HF_TOKEN"
        ) from error
    except EntryNotFoundError as error:
        raise _failed(
            f"the repository {repo} has no file {filename}", "see the repository's list of files"
        ) from error
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
        raise _failed(
            f"cannot fetch {where}: {error}", "check the connection, the disk and HF_ENDPOINT"
        ) from error


def _bar_class(progress: Progress) -> Any:
    """A progress bar class for the hub library that reports to ``progress`` and prints nothing."""

    class Bar(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            self._handle = progress.start(str(options.get("desc") or "downloading"), options.get("total"))
            self._handle.advance(int(options.get("initial") or 0))
            super().__init__(*args, **options | {"disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            self._handle.advance(int(n or 0))

        def close(self) -> None:
            self._handle.close()
            super().close()

    return Bar


def _failed(reason: str, hint: str) -> InterlockError:
    return InterlockError("model_not_found", reason, param="model", hint=hint)
