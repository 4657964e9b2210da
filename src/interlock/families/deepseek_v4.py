"""DeepSeek V4: DSML."""

from __future__ import annotations

from interlock.families.base import ModelFamily
from interlock.families.dsml import DSML_REASONING_WITH_EFFORT, dsml_calls, dsml_closer
from interlock.families.templates.dsml import dsml_template

_PREFIX = "｜DSML｜"

FAMILY = ModelFamily(
    name="deepseek_v4",
    aliases=("deepseek-v4",),
    title="DeepSeek V4",
    tool_calls=dsml_calls(_PREFIX, "tool_calls"),
    reasoning=DSML_REASONING_WITH_EFFORT,
    template=dsml_template(_PREFIX, "tool_calls"),
    reserved=(dsml_closer(_PREFIX), "</tool_result>"),
    architectures=("deepseek_v4", "deepseek4"),
)
