"""Find a llama.cpp library, make sure that it is the one whose structs are known, and route its log."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from interlock import log
from interlock.errors import InterlockError
from interlock.runners.llama_cpp import abi

LibraryName = Literal["xllamacpp", "llama-cpp-python"]

_logger = logging.getLogger("interlock.llama_cpp")
_MODULES: Mapping[LibraryName, str] = {"xllamacpp": "xllamacpp", "llama-cpp-python": "llama_cpp"}
_NUM_LINES_KEPT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A loaded library. native: its functions, typed. structs: the struct classes that it takes."""

    name: LibraryName
    version: str
    native: ctypes.CDLL
    structs: abi.Structs
    messages: LogMessages


class LogMessages:
    """llama.cpp's log: every line to Python's logging at debug, the latest warnings and errors kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_NUM_LINES_KEPT)
        self._level = 0
        # The library keeps the address only; the callback must live as long as the library.
        self.callback = abi.LOG_CALLBACK(self._receive)

    def clear(self) -> None:
        """Forget what was kept, before a call whose failure is to be explained."""
        self._lines.clear()

    def last(self) -> str:
        """The latest error line, in words for a message."""
        return self._lines[-1] if self._lines else "no reason was logged"

    def _receive(self, level: int, text: bytes | None, _user_data: object) -> None:
        line = (text or b"").decode("utf-8", "replace").strip()
        if level != abi.LOG_CONTINUE:
            self._level = level
        if not line:
            return
        _logger.debug("%s", line)
        if self._level == abi.LOG_ERROR:
            self._lines.append(line)


def load_library(choice: Literal["auto"] | LibraryName = "auto") -> Library:
    """Load the library chosen; ``auto`` takes xllamacpp, else llama-cpp-python. Loaded once per process.

    Raises ``InterlockError``: ``missing_extra`` where it is not installed, ``invalid_value`` where it is a version
    with other structs.
    """
    name = _installed(choice)
    return _load(name)


def _installed(choice: Literal["auto"] | LibraryName) -> LibraryName:
    names: tuple[LibraryName, ...] = ("xllamacpp", "llama-cpp-python") if choice == "auto" else (choice,)
    for name in names:
        if importlib.util.find_spec(_MODULES[name]) is not None:
            return name
    raise InterlockError(
        "missing_extra",
        f"no llama.cpp library is installed ({' or '.join(names)})",
        hint=_install_hint(names[0]),
    )


@cache
def _load(name: LibraryName) -> Library:
    version = importlib.metadata.version(name)
    path, structs = _xllamacpp() if name == "xllamacpp" else _llama_cpp_python()
    try:
        native = ctypes.CDLL(str(path))
    except OSError as error:
        raise InterlockError("invalid_value", f"{name} {version} cannot be loaded: {error}") from error
    _verify(name, version, native, structs)
    messages = LogMessages()
    native.llama_log_set(messages.callback, None)
    native.llama_backend_init()
    log.get(__name__).debug("llama.cpp from %s %s", name, version)
    return Library(name=name, version=version, native=native, structs=structs, messages=messages)


def _xllamacpp() -> tuple[Path, abi.Structs]:
    """Its one extension module exports llama.cpp's C interface; importing it would load a whole server."""
    spec = importlib.util.find_spec("xllamacpp")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
    paths = [path for folder in folders for path in sorted(folder.glob("xllamacpp.*.so"))]
    if not paths:
        raise InterlockError(
            "invalid_value", "xllamacpp has no extension module", hint=_install_hint("xllamacpp")
        )
    return paths[0], abi.XLLAMACPP_STRUCTS


def _llama_cpp_python() -> tuple[Path, abi.Structs]:
    """It brings struct classes that fit its own library."""
    from llama_cpp import llama_cpp as low_level

    structs = abi.Structs(low_level.llama_model_params, low_level.llama_context_params, low_level.llama_batch)
    return Path(low_level._lib._name), structs


def _verify(name: LibraryName, version: str, native: ctypes.CDLL, structs: abi.Structs) -> None:
    """Refuse a library whose functions or structs are not those of ``abi``."""
    findings = [f"{function} is missing" for function in abi.declare(native, abi.prototypes(structs))]
    if not findings and name == "xllamacpp":
        findings += abi.mismatches(native.llama_model_default_params(), abi.MODEL_DEFAULTS)
        findings += abi.mismatches(native.llama_context_default_params(), abi.CONTEXT_DEFAULTS)
    if findings:
        raise InterlockError(
            "invalid_value",
            f"{name} {version} does not have the C interface expected of {_expected(name)}: {'; '.join(findings)}",
            hint=_install_hint(name),
        )


def _expected(name: LibraryName) -> str:
    return f"{name} {abi.XLLAMACPP_VERSION}" if name == "xllamacpp" else name


def _install_hint(name: LibraryName) -> str:
    if name == "xllamacpp":
        return f"pip install xllamacpp=={abi.XLLAMACPP_VERSION}"
    return "pip install 'interlock-llm[llama-cpp-python]'"
