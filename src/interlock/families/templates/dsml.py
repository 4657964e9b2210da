"""DeepSeek V4 and later: system text with tools, turns of user and assistant, calls as DSML.

The words that tell the model of its tools are those it was trained on, so they are not ours to change.
"""

from __future__ import annotations

_EFFORT = (
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, "
    "rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.\\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, considered "
    "alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.\\n\\n"
)
_TOOLS = """## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<@D@calls>" \
block like the following:

<@D@calls>
<@D@invoke name="$TOOL_NAME">
<@D@parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</@D@parameter>
...
</@D@invoke>
<@D@invoke name="$TOOL_NAME2">
...
</@D@invoke>
</@D@calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, \
objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> \
BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

"""
_TOOLS_END = (
    "\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"
)

_TEMPLATE = """\
{%- set thinking = thinking if thinking is defined else (enable_thinking | default(false)) -%}
{%- set told = namespace(system=[], last=-1, results=false) -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}{%- set told.system = told.system + [message.content or ''] -%}{%- endif -%}
  {%- if message.role in ('user', 'developer', 'tool') -%}{%- set told.last = loop.index0 -%}{%- endif -%}
  {%- if message.role == 'tool' -%}{%- set told.results = true -%}{%- endif -%}
{%- endfor -%}
{{- bos_token -}}
{%- if messages and thinking and reasoning_effort | default('') == 'max' -%}{{- effort_text -}}{%- endif -%}
{{- told.system | join('\\n\\n') -}}
{%- if tools -%}
  {{- '\\n\\n' if told.system | join else '' -}}
  {{- tools_text -}}
  {%- for tool in tools -%}{{- tool.function | tojson -}}{{- '\\n' -}}{%- endfor -%}
  {{- tools_end -}}
{%- endif -%}
{%- set turn = namespace(user=false) -%}
{%- for message in messages -%}
  {%- if message.role in ('user', 'developer', 'tool') -%}
    {{- '\\n\\n' if turn.user else '<｜User｜>' -}}
    {%- set turn.user = true -%}
    {%- if message.role == 'tool' -%}
      {{- '<tool_result>' + (message.content or '') + '</tool_result>' -}}
    {%- else -%}
      {{- message.content or '' -}}
    {%- endif -%}
  {%- elif message.role == 'assistant' -%}
    {%- set turn.user = false -%}
    {{- '<｜Assistant｜>' -}}
    {%- if thinking and (drop_thinking | default(true) == false or tools or told.results or loop.index0 > told.last) -%}
      {{- '<think>' + (message.reasoning_content or '') -}}
    {%- endif -%}
    {{- '</think>' + (message.content or '') -}}
    {%- if message.tool_calls -%}
      {{- '\\n\\n<@D@calls>\\n' -}}
      {%- for call in message.tool_calls -%}
        {{- '<@D@invoke name="' + call.function.name + '">\\n' -}}
        {%- for key, value in call.function.arguments.items() -%}
          {{- '<@D@parameter name="' + key + '" string="' + ('true' if value is string else 'false') + '">' -}}
          {{- value if value is string else value | tojson -}}
          {{- '</@D@parameter>\\n' -}}
        {%- endfor -%}
        {{- '' if call.function.arguments else '\\n' -}}
        {{- '</@D@invoke>\\n' -}}
      {%- endfor -%}
      {{- '</@D@calls>' -}}
    {%- endif -%}
    {{- '<｜end▁of▁sentence｜>' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<｜Assistant｜>' + ('<think>' if thinking else '</think>') -}}{%- endif -%}
"""


def dsml_template(sentinel: str, block: str) -> str:
    """The template of a version whose tags begin with ``sentinel`` and whose calls stand in ``block``."""
    texts = {
        "effort_text": _EFFORT,
        "tools_text": _TOOLS.replace("\n", "\\n"),
        "tools_end": _TOOLS_END.replace("\n", "\\n"),
    }
    sets = "".join(f"{{%- set {name} = '{_quoted(text)}' -%}}\n" for name, text in texts.items())
    return (sets + _TEMPLATE).replace("@D@calls", sentinel + block).replace("@D@", sentinel)


def _quoted(text: str) -> str:
    return text.replace("'", "\\'")
