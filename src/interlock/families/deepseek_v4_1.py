"""DeepSeek V4.1: DSML."""

from __future__ import annotations

from interlock.families.base import ModelFamily
from interlock.families.dsml import DSML_REASONING_WITH_EFFORT, dsml_calls, dsml_closer
from interlock.families.templates.dsml import dsml_template

_PREFIX = "｜DSML｜ "

FAMILY = ModelFamily(
    name="deepseek_v4_1",
    aliases=("deepseek_v41", "deepseek-v4.1"),
    title="DeepSeek V4.1",
    tool_calls=dsml_calls(_PREFIX, "calls"),
    reasoning=DSML_REASONING_WITH_EFFORT,
    template=dsml_template(_PREFIX, "calls"),
    reserved=(dsml_closer(_PREFIX), "</tool_result>"),
    architectures=("deepseek_v41",),
)
