"""Outputs of a run, and what of them must be the same in another one."""

from __future__ import annotations

from typing import Any

from interlock.core.engine import EngineOutput

Outputs = dict[str, list[EngineOutput]]
"""By request id."""


def told(outputs: Outputs) -> dict[str, list[Any]]:
    """Everything but how tokens are cut into outputs and how many were cached."""
    return {
        name: [
            [token_id for output in those for token_id in output.token_ids],
            [logprob for output in those for logprob in output.logprobs],
            those[-1].finish_reason,
            those[-1].failure,
            those[-1].is_accepting,
        ]
        for name, those in sorted(outputs.items())
    }
