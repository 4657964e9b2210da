"""Interlock's own endpoints: ``/tokenize``, ``/detokenize``, ``/v1/check``."""
