"""DeepSeek V3.2 and later: system text with tools, turns of user and assistant, calls as DSML.

The words that tell the model of its tools are those it was trained on, so they are not ours to change.
"""

from __future__ import annotations

_EFFORT = (
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, "
    "rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, considered "
    "alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.\n\n"
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

# V3.2 says it in other words.
_OLDER_TOOLS = """## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<@D@calls>" block like the following as part of your reply to the user:
<@D@calls>
<@D@invoke name="$FUNCTION_NAME">
<@D@parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</@D@parameter>
...
</@D@invoke>
<@D@invoke name="$FUNCTION_NAME2">
...
</@D@invoke>
</@D@calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should \
use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types \
(numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. \
Here is an example:

<@D@calls>
...
</@D@calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
"""
_OLDER_TOOLS_END = "</functions>\n"

_SYSTEM = """\
{%- macro calls(message) -%}
  {%- if message.tool_calls -%}
    {{- '\\n\\n<@D@calls>\\n' -}}
    {%- for call in message.tool_calls -%}
      {{- '<@D@invoke name="' + call.function.name + '">\\n' -}}
      {%- for key, value in call.function.arguments.items() -%}
        {{- '<@D@parameter name="' + key + '" string="' + ('true' if value is string else 'false') + '">' -}}
        {{- value if value is string else value | tojson -}}
        {{- '</@D@parameter>\\n' -}}
      {%- endfor -%}
      {{- '' if call.function.arguments else no_arguments -}}
      {{- '</@D@invoke>\\n' -}}
    {%- endfor -%}
    {{- '</@D@calls>' -}}
  {%- endif -%}
{%- endmacro -%}
{%- set thinking = thinking if thinking is defined else (enable_thinking | default(false)) -%}
{%- set told = namespace(system=[], asked=-1, answered=-1) -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}{%- set told.system = told.system + [message.content or ''] -%}{%- endif -%}
  {%- if message.role in ('user', 'developer') -%}{%- set told.asked = loop.index0 -%}{%- endif -%}
  {%- if message.role == 'tool' -%}{%- set told.answered = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{{- bos_token -}}
{%- if messages and thinking and reasoning_effort | default('') == 'max' -%}{{- effort_text -}}{%- endif -%}
{%- set system = told.system | join('\\n\\n') -%}
{{- system -}}
{%- if tools -%}
  {{- '\\n\\n' if system else '' -}}
  {{- tools_text -}}
  {%- for tool in tools -%}{{- tool.function | tojson -}}{{- '\\n' -}}{%- endfor -%}
  {{- tools_end -}}
{%- endif -%}
"""

# Results are the user's. Thinking of earlier turns stays where tools are.
_TURNS = """\
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
    {%- set is_last = loop.index0 > told.asked and loop.index0 > told.answered -%}
    {{- '<｜Assistant｜>' -}}
    {%- if thinking and (not drop_thinking | default(true) or tools or told.answered >= 0 or is_last) -%}
      {{- '<think>' + (message.reasoning_content or '') -}}
    {%- endif -%}
    {{- '</think>' + (message.content or '') + calls(message) + '<｜end▁of▁sentence｜>' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<｜Assistant｜>' + ('<think>' if thinking else '</think>') -}}{%- endif -%}
"""

# Results are a block of their own, after which the assistant goes on.
_OLDER_TURNS = """\
{%- set turn = namespace(begins='') -%}
{%- for message in messages -%}
  {%- if message.role == 'user' -%}
    {{- '<｜User｜>' + (message.content or '') -}}
    {%- set turn.begins = '<｜Assistant｜>' -%}
  {%- elif message.role == 'assistant' -%}
    {%- if turn.begins -%}
      {{- turn.begins -}}
      {{- '<think>' + (message.reasoning_content or '') if thinking and loop.index0 > told.asked else '' -}}
      {{- '</think>' -}}
    {%- endif -%}
    {{- (message.content or '') + calls(message) + '<｜end▁of▁sentence｜>' -}}
    {%- set turn.begins = '' -%}
  {%- elif message.role == 'tool' -%}
    {{- '' if loop.previtem.role == 'tool' else '\\n\\n<function_results>' -}}
    {{- '\\n<result>' + (message.content or '') + '</result>' -}}
    {%- if loop.last or loop.nextitem.role != 'tool' -%}
      {{- '\\n</function_results>' -}}
      {%- set turn.begins = '\\n\\n' -%}
    {%- endif -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and turn.begins -%}
  {{- turn.begins + ('<think>' if thinking else '<think></think>') -}}
{%- endif -%}
"""


def dsml_template(sentinel: str, block: str) -> str:
    """V4 and later: tags begin with ``sentinel``, and calls stand in ``block``."""
    texts = {"effort_text": _EFFORT, "tools_text": _TOOLS, "tools_end": _TOOLS_END, "no_arguments": "\n"}
    return _template(texts, _TURNS, sentinel, block)


def dsml_template_v3_2(sentinel: str, block: str) -> str:
    """The same for V3.2."""
    texts = {"effort_text": "", "tools_text": _OLDER_TOOLS, "tools_end": _OLDER_TOOLS_END, "no_arguments": ""}
    return _template(texts, _OLDER_TURNS, sentinel, block)


def _template(texts: dict[str, str], turns: str, sentinel: str, block: str) -> str:
    sets = "".join(f"{{%- set {name} = '{_quoted(text)}' -%}}\n" for name, text in texts.items())
    return (sets + _SYSTEM + turns).replace("@D@calls", sentinel + block).replace("@D@", sentinel)


def _quoted(text: str) -> str:
    return text.replace("'", "\\'").replace("\n", "\\n")
