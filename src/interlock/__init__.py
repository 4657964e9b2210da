"""Interlock: an LLM server whose tool calls and structured outputs cannot come out wrong."""

__version__ = "0.1.0"
