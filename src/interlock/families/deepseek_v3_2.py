"""DeepSeek V3.2: DSML."""

from __future__ import annotations

from interlock.families.base import ModelFamily
from interlock.families.dsml import DSML_REASONING, dsml_calls, dsml_closer
from interlock.families.templates.dsml import dsml_template_v3_2

_PREFIX = "｜DSML｜"

FAMILY = ModelFamily(
    name="deepseek_v3_2",
    aliases=("deepseek_v32", "deepseek-v3.2"),
    title="DeepSeek V3.2",
    tool_calls=dsml_calls(_PREFIX, "function_calls", ends_lines=True),
    reasoning=DSML_REASONING,
    template=dsml_template_v3_2(_PREFIX, "function_calls"),
    reserved=(dsml_closer(_PREFIX), "</result>"),
    architectures=("deepseek_v32",),
)
