"""Errors found below the API name fields as chat completions has them; here they get the client's names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.errors import InterlockError

_MESSAGE = re.compile(r"messages\[(\d+)\](?:\.content(?=$))?")


@dataclass(frozen=True, slots=True)
class Places:
    """messages: where each message of a ``GenerateRequest`` comes from in the body, by index.
    names: what a field is called instead, the first that fits."""

    messages: Sequence[str]
    names: Sequence[tuple[str, str]]

    def of(self, error: InterlockError) -> InterlockError:
        """The same error with the client's names in ``param`` and in the message."""
        if error.param is None:
            return error
        param = self._client_name(error.param)
        return InterlockError(
            error.code,
            error.message.replace(error.param, param),
            param=param,
            problems=error.problems,
            hint=error.hint,
        )

    def _client_name(self, param: str) -> str:
        found = _MESSAGE.match(param)
        if found is not None and int(found[1]) < len(self.messages):
            param = self.messages[int(found[1])] + param[found.end() :]
        for pattern, name in self.names:
            param, count = re.subn(pattern, name, param)
            if count:
                break
        return param
