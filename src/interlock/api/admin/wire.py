"""The body of ``PUT /admin/api/models/{id}/settings``, for the OpenAPI document: what ``ModelSettings.changed`` takes."""

from __future__ import annotations

from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from interlock.settings.model import ModelSettings

_FIELDS: dict[str, Any] = {name: (hint, None) for name, hint in get_type_hints(ModelSettings).items()}

WireSettings: type[BaseModel] = create_model("WireSettings", __config__=ConfigDict(extra="forbid"), **_FIELDS)
