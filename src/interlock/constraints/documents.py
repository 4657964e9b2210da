"""Schemas given beforehand, which ``$ref`` may name by their URI: JSON text by URI. Nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NO_DOCUMENTS: Mapping[str, str] = MappingProxyType({})
