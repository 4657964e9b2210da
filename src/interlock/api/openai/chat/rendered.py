"""What a chat completion would run, without running it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from interlock.core.tools import Tool, ToolContext
from interlock.resolve.resolve import Resolved


def rendered(resolved: Resolved, decode: Callable[[Sequence[int]], str]) -> dict[str, Any]:
    """prompt, prompt_token_ids: what the model reads. constraint: what its answer is held to, as a tree for people
    and as data; ``null`` for a free answer."""
    request, spec = resolved.engine_request, resolved.spec
    return {
        "prompt": decode(request.prompt_ids),
        "prompt_token_ids": request.prompt_ids,
        "num_prompt_tokens": len(request.prompt_ids),
        "max_tokens": request.max_tokens,
        "constraint": spec
        and {
            "kind": resolved.constraint_kind,
            "whole_answer": resolved.bound,
            "digest": spec.digest(),
            "tree": spec.tree(),
            "spec": msgspec.Raw(spec.to_json().encode()),
        },
        "tools": _tools(resolved.tools),
        "thinking": resolved.thinking,
        "thinking_budget": request.thinking.max_tokens if request.thinking is not None else None,
        "stop": list(resolved.stop),
        "stop_token_ids": request.stop_ids,
        "notes": list(resolved.notes),
    }


def _tools(tools: ToolContext) -> dict[str, Any]:
    choice = tools.tool_choice
    return {
        "effective": [_tool(tool) for tool in tools.effective_tools],
        "deferred": [tool.name for tool in tools.deferred_tools],
        "callable": [tool.name for tool in tools.callable_tools],
        "tool_choice": {"mode": choice.mode, "name": choice.name, "allowed": choice.allowed},
        "parallel_tool_calls": tools.parallel_tool_calls,
        "constrained": tools.constrained,
        "reason": tools.constrained_reason,
    }


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": msgspec.Raw(tool.parameters.encode()),
        "strict": tool.strict,
    }
