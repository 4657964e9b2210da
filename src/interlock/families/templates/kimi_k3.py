"""Kimi K3: messages as tags between marker tokens, tools declared where the conversation tells of them.

The words of the system's own messages are those the model was trained on, so they are not ours to change. Images are
not written: no engine here reads them.
"""

from __future__ import annotations

KIMI_K3_TEMPLATE = r"""
{%- macro tag(name, attributes) -%}
  {{- '<|open|>' + name -}}
  {%- for key, value in attributes.items() -%}
    {{- ' ' + key + '="' + value | string | replace('&', '&amp;') | replace('"', '&quot;') + '"' -}}
  {%- endfor -%}
  {{- '<|sep|>' -}}
{%- endmacro -%}
{%- macro element(name, attributes, body) -%}
  {{- tag(name, attributes) + body + '<|close|>' + name + '<|sep|>' -}}
{%- endmacro -%}
{%- macro turn(attributes, body) -%}
  {{- element('message', attributes, body) + '<|end_of_msg|>' -}}
{%- endmacro -%}
{%- macro sorted(value) -%}
  {%- if value is mapping -%}
    {{- '{' -}}
    {%- for key, item in value | dictsort -%}
      {{- key | tojson + ':' + sorted(item) + ('' if loop.last else ',') -}}
    {%- endfor -%}
    {{- '}' -}}
  {%- elif value is sequence and value is not string -%}
    {{- '[' -}}{%- for item in value -%}{{- sorted(item) + ('' if loop.last else ',') -}}{%- endfor -%}{{- ']' -}}
  {%- else -%}
    {{- value | tojson -}}
  {%- endif -%}
{%- endmacro -%}
{%- macro declared(tools, words) -%}
  {{- turn({'role': 'system', 'type': 'tool-declare'}, words + '\n\n```json\n' + sorted(tools) + '\n```') -}}
{%- endmacro -%}
{%- macro type(value) -%}
  {{- 'boolean' if value is boolean else 'null' if value is none else 'number' if value is number
      else 'string' if value is string else 'object' if value is mapping else 'array' -}}
{%- endmacro -%}
{%- macro said(message) -%}
  {%- if thinking -%}
    {%- set thought = message.reasoning_content or '' -%}
    {{- element('think', {}, thought if thought | trim else '') -}}
  {%- endif -%}
  {{- element('response', {}, message.content or '') -}}
  {%- if message.tool_calls -%}
    {{- tag('tools', {}) -}}
    {%- for call in message.tool_calls -%}
      {{- tag('call', {'tool': call.function.name, 'index': loop.index}) -}}
      {%- for key, value in call.function.arguments.items() -%}
        {{- element('argument', {'key': key, 'type': type(value)}, value if value is string else value | tojson) -}}
      {%- endfor -%}
      {{- '<|close|>call<|sep|>' -}}
    {%- endfor -%}
    {{- '<|close|>tools<|sep|>' -}}
  {%- endif -%}
{%- endmacro -%}
{%- macro results(messages, calls) -%}
  {%- set ids = calls | map(attribute='id') | list -%}
  {%- set told = namespace(index=0, ordered=[]) -%}
  {%- if messages | rejectattr('tool_call_id', 'in', ids) | list -%}
    {%- set told.ordered = messages -%}
  {%- else -%}
    {%- for id in ids -%}
      {%- set told.ordered = told.ordered + (messages | selectattr('tool_call_id', 'equalto', id) | list) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- for message in told.ordered -%}
    {%- if not message.name -%}
      {{- raise_exception('a tool message needs the name of its tool, or the id of a call') -}}
    {%- endif -%}
    {{- turn({'role': 'tool', 'tool': message.name, 'index': loop.index}, message.content or '') -}}
  {%- endfor -%}
{%- endmacro -%}

{%- set thinking = thinking if thinking is defined else true -%}
{%- set thinking_effort = thinking_effort if thinking_effort is defined else 'max' -%}
{%- if tools -%}
  {{- declared(tools, '# Tools\nHere are the available tools, described in JSONSchema.') -}}
{%- endif -%}
{%- if thinking and thinking_effort is not none -%}
  {%- if thinking_effort not in ('low', 'high', 'max') -%}
    {{- raise_exception('thinking_effort is low, high or max') -}}
  {%- endif -%}
  {{- turn({'role': 'system', 'type': 'thinking-effort'},
    '`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), '
    + 'supported values include `low`, `medium`, `high`, and `max`.\n'
    + 'Now the system is invoked with `thinking_effort=' + thinking_effort + '`.') -}}
{%- endif -%}
{%- set state = namespace(calls=[], results=[]) -%}
{%- for message in messages -%}
  {%- if message.role == 'tool' -%}
    {%- set state.results = state.results + [message] -%}
    {%- if loop.last or loop.nextitem.role != 'tool' -%}
      {{- results(state.results, state.calls) -}}
      {%- set state.results = [] -%}
    {%- endif -%}
  {%- elif message.role == 'system' and message.tools -%}
    {{- declared(message.tools, '## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n'
      + 'You have access to all existing and extended tools.\nHere are the specs for the extended tools.') -}}
  {%- else -%}
    {%- set names = {'name': message.name} if message.name else {} -%}
    {%- set body = said(message) if message.role == 'assistant' else message.content or '' -%}
    {{- turn(dict(role=message.role, **names), body) -}}
    {%- if message.role == 'assistant' -%}{%- set state.calls = message.tool_calls or [] -%}{%- endif -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- tag('message', {'role': 'assistant'}) + tag('think' if thinking else 'response', {}) -}}
{%- endif -%}
"""
