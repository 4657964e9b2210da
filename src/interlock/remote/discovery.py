"""What a running vLLM says about its model."""

from __future__ import annotations

from pathlib import Path

import httpx

from interlock.errors import InterlockError

_TIMEOUT_S = 10.0


def ask_for_model(url: str, api_key: str | None, model: str | None = None) -> tuple[str, Path | None]:
    """The name of the model that is served at ``url``, and the folder it was loaded from, if that is on this machine.
    model: which, where there are several. Raises ``InterlockError``."""
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    try:
        answer = httpx.get(f"{url.rstrip('/')}/v1/models", headers=headers, timeout=_TIMEOUT_S)
        answer.raise_for_status()
        models = {one["id"]: one.get("root") for one in answer.json()["data"]}
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise InterlockError("not_ready", f"vLLM at {url} does not tell its models: {error}") from None
    name = model or next(iter(models), "")
    if name not in models:
        raise InterlockError("model_not_found", f"{url} serves {', '.join(models) or 'nothing'}, not {name!r}")
    root = Path(models[name] or "")
    return name, root if (root / "tokenizer.json").is_file() else None
