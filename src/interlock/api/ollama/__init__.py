"""Ollama's API, so that its clients work: ``/api/chat``, ``/api/generate``, ``/api/tags``, ``/api/show``."""
