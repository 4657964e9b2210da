"""gpt-oss: messages on channels, tools as TypeScript in the developer's message.

Line breaks and spaces inside of types are as the model's own template leaves them. Tools that run inside of the model's
server (browser, Python) are not written: there are none here.
"""

from __future__ import annotations

HARMONY_TEMPLATE = r"""
{%- macro type(spec) -%}
  {%- if spec.type == 'array' -%}
    {%- set inner = 'any' if not spec['items'] else 'string' if spec['items'].type == 'string' else type(spec['items']) -%}
    {{- 'any' if inner | length > 50 or inner == 'object | object' else inner -}}
    {{- '[] | null' if spec.nullable else '[]' -}}
  {%- elif spec.type is sequence and spec.type is not string and spec.type -%}
    {{- spec.type | join(' | ') -}}
  {%- elif spec.oneOf -%}
    {%- for variant in spec.oneOf -%}
      {{- type(variant) + ('// ' + variant.description if variant.description else '') -}}
      {{- ' ' * 20 + '// default: ' + variant.default | tojson if variant.default is defined else '' -}}
      {{- '' if loop.last else ' | \n' -}}
    {%- endfor -%}
  {%- elif spec.type == 'string' -%}
    {{- '"' + spec.enum | join('" | "') + '"' if spec.enum else 'string | null' if spec.nullable else 'string' -}}
  {%- elif spec.type in ('number', 'integer') -%}
    {{- 'number' -}}
  {%- elif spec.type == 'object' and spec.properties -%}
    {{- '{\n' -}}
    {%- for name, inner in spec.properties.items() -%}
      {{- member(name, spec) + '\n' + ' ' * 16 + type(inner) + ('' if loop.last else ', ') -}}
    {%- endfor -%}
    {{- '}' -}}
  {%- else -%}
    {{- spec.type if spec.type in ('boolean', 'object') else 'any' -}}
  {%- endif -%}
{%- endmacro -%}
{%- macro member(name, spec) -%}
  {{- name + (': ' if name in (spec.required or []) else '?: ') -}}
{%- endmacro -%}
{%- macro default(spec) -%}
  {%- if spec.default is defined -%}
    {{- '// default: ' if spec.oneOf and not spec.enum else ', // default: ' -}}
    {{- spec.default if spec.default is string and (spec.enum or spec.oneOf) else spec.default | tojson -}}
  {%- endif -%}
{%- endmacro -%}
{%- macro function(tool) -%}
  {{- '// ' + (tool.description or '') + '\ntype ' + tool.name + ' = (' -}}
  {%- if tool.parameters and tool.parameters.properties -%}
    {{- '_: {\n' -}}
    {%- for name, spec in tool.parameters.properties.items() -%}
      {{- '// ' + spec.description + '\n' if spec.description else '' -}}
      {{- member(name, tool.parameters) + type(spec) + default(spec) + ',\n' -}}
    {%- endfor -%}
    {{- '}' -}}
  {%- endif -%}
  {{- ') => any;\n\n' -}}
{%- endmacro -%}

{{- '<|start|>system<|message|>' -}}
{{- (model_identity | default('You are ChatGPT, a large language model trained by OpenAI.')) + '\n' -}}
{{- 'Knowledge cutoff: 2024-06\nCurrent date: ' + strftime_now('%Y-%m-%d') + '\n\n' -}}
{{- 'Reasoning: ' + reasoning_effort | default('medium') + '\n\n' -}}
{{- '# Valid channels: analysis, commentary, final. Channel must be included for every message.' -}}
{{- "\nCalls to these tools must go to the commentary channel: 'functions'." if tools else '' -}}
{{- '<|end|>' -}}
{%- set told = messages[0].content if messages[0].role in ('system', 'developer') else '' -%}
{%- if told or tools -%}
  {{- '<|start|>developer<|message|>' + ('# Instructions\n\n' + told + '\n\n' if told else '') -}}
  {%- if tools -%}
    {{- '# Tools\n\n## functions\n\nnamespace functions {\n\n' -}}
    {%- for tool in tools -%}{{- function(tool.function) -}}{%- endfor -%}
    {{- '} // namespace functions' -}}
  {%- endif -%}
  {{- '<|end|>' -}}
{%- endif -%}
{%- set state = namespace(answers=messages | rejectattr('tool_calls') | selectattr('role', 'equalto', 'assistant') | list | length) -%}
{%- for message in messages -%}
  {%- if message.role == 'user' -%}
    {{- '<|start|>user<|message|>' + message.content + '<|end|>' -}}
  {%- elif message.role == 'tool' -%}
    {%- if not message.name -%}{{- raise_exception('a tool message needs the id of an earlier call') -}}{%- endif -%}
    {{- '<|start|>functions.' + message.name + ' to=assistant<|channel|>commentary<|message|>' -}}
    {{- message.content | tojson + '<|end|>' -}}
  {%- elif message.role == 'assistant' and message.tool_calls -%}
    {%- set thought = message.content or message.thinking or '' -%}
    {%- if thought and not state.answers -%}
      {{- '<|start|>assistant<|channel|>analysis<|message|>' + thought + '<|end|>' -}}
    {%- endif -%}
    {%- for call in message.tool_calls -%}
      {{- '<|start|>assistant to=functions.' + call.function.name + '<|channel|>commentary json<|message|>' -}}
      {{- call.function.arguments | tojson + '<|call|>' -}}
    {%- endfor -%}
  {%- elif message.role == 'assistant' -%}
    {%- set state.answers = state.answers - 1 -%}
    {{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' -}}
  {%- elif not loop.first -%}
    {{- '<|start|>developer<|message|># Instructions\n\n' + message.content + '<|end|>' -}}
  {%- endif -%}
{%- endfor -%}
{{- '<|start|>assistant' if add_generation_prompt else '' -}}
"""
