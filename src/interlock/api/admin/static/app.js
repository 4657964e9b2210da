// The admin page. No dependency, no build: every view is a function of what the server says.
import { createTrace } from "/admin/static/trace.js";
import { createSettings } from "/admin/static/settings.js";

const $ = (id) => document.getElementById(id);
const TABS = ["playground", "trace", "requests", "models"];
const EXAMPLES = {
  schema: {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, maxLength: 40 },
      age: { type: "integer", minimum: 0, maximum: 120 },
      languages: { type: "array", items: { enum: ["English", "French", "German"] }, uniqueItems: true },
    },
    required: ["name", "age"],
  },
  tools: [{
    type: "function",
    function: {
      name: "get_weather",
      description: "Weather of a city",
      parameters: {
        type: "object",
        properties: { city: { type: "string", maxLength: 30 }, unit: { enum: ["celsius", "fahrenheit"] } },
        required: ["city", "unit"],
      },
    },
  }],
  regex: "(yes|no), because [a-z ]{3,40}\\.",
  free: "",
};
EXAMPLES.auto = EXAMPLES.tools;

export function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export function alertUser(text) {
  $("alert").textContent = text;
  $("alert").hidden = !text;
}

function headers() {
  const key = $("key").value;
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

export async function api(path, { method = "GET", body, signal } = {}) {
  const options = { method, headers: headers(), signal, body: body === undefined ? undefined : JSON.stringify(body) };
  const response = await fetch(path, options);
  if (!response.ok) throw new Error(words(await response.json().catch(() => ({})), response.status));
  return response;
}

function words(body, status) {
  const error = body.error ?? {};
  const problems = (error.problems ?? []).map((one) => `  ${one.pointer || "/"} ${one.keyword}: ${one.reason}`);
  return [error.message ?? `status ${status}`, ...problems, error.hint ?? ""].filter(Boolean).join("\n");
}

async function guarded(action) {
  alertUser("");
  try {
    return await action();
  } catch (error) {
    if (error.name !== "AbortError") alertUser(error.message);
    return undefined;
  }
}

// ---- views

function show(name) {
  for (const tab of TABS) {
    $(tab).hidden = tab !== name;
    $(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
    $(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
  }
  history.replaceState(null, "", `#${name}`);
  if (name === "requests") poll();
}

document.querySelector("nav").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const now = TABS.findIndex((tab) => !$(tab).hidden);
  const next = TABS[(now + step + TABS.length) % TABS.length];
  show(next);
  $(`tab-${next}`).focus();
});
for (const tab of TABS) $(`tab-${tab}`).addEventListener("click", () => show(tab));

// ---- playground

const trace = createTrace($);
let running = null;

function constraint() {
  const kind = $("kind").value;
  const text = $("constraint").value;
  if (kind === "free") return {};
  if (kind === "regex") return { structured_outputs: { regex: text } };
  const value = JSON.parse(text);
  if (kind === "schema") return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: value } } };
  return { tools: value, tool_choice: kind === "tools" ? "required" : "auto" };
}

async function check() {
  let body;
  try {
    body = constraint();
  } catch (error) {
    $("constraint").setAttribute("aria-invalid", "true");
    report([], `not JSON: ${error.message}`, false);
    return;
  }
  $("constraint").setAttribute("aria-invalid", "false");
  if ($("kind").value === "free") {
    report([], "nothing", true);
    $("tree").textContent = "";
    return;
  }
  await guarded(async () => {
    const found = await (await api("/v1/check", { method: "POST", body: { model: $("model").value, ...body } })).json();
    const rows = found.schemas.flatMap((schema) => schema.report.map((row) => ({ ...row, tool: schema.tool })));
    const told = found.ok ? "taken" : found.error?.message ?? "refused";
    report(rows.length ? rows : found.problems.map((one) => ({ ...one, state: "refused" })), told, found.ok);
    $("tree").textContent = found.constraint?.tree ?? "";
  });
  if ($("prompt-details").open) await preview();
}

async function preview() {
  await guarded(async () => {
    const rendered = await (await api("/v1/chat/completions/render", { method: "POST", body: request() })).json();
    $("prompt").textContent = `${rendered.prompt}\n\n(${rendered.num_prompt_tokens} tokens)`;
  });
}

function request() {
  const system = $("system").value;
  return {
    model: $("model").value,
    messages: [...(system ? [{ role: "system", content: system }] : []), { role: "user", content: $("message").value }],
    max_tokens: Number($("max-tokens").value),
    temperature: Number($("temperature").value),
    ...constraint(),
  };
}

function report(rows, verdict, good) {
  $("verdict").textContent = verdict;
  $("verdict").className = good ? "good" : "bad";
  const order = { refused: 0, unenforced: 1, guard: 2, grammar: 3, annotation: 4 };
  const sorted = [...rows].sort((a, b) => (order[a.state] ?? 9) - (order[b.state] ?? 9));
  $("report").tBodies[0].replaceChildren(...sorted.map((row) => {
    const line = element("tr");
    const place = row.tool ? `${row.tool}: ${row.pointer || "/"}` : row.pointer || "/";
    line.append(element("td", row.keyword), element("td", place));
    line.append(element("td", row.state, { class: `state-${row.state}` }), element("td", row.reason));
    return line;
  }));
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}

function write(kind, text) {
  const last = $("answer").lastElementChild;
  if (last?.className === kind) last.textContent += text;
  else $("answer").append(element("span", text, { class: kind }));
}

function take(chunk) {
  if (chunk.error) throw new Error(words(chunk, 500));
  trace.add(chunk.interlock?.trace ?? []);
  for (const choice of chunk.choices ?? []) {
    const delta = choice.delta;
    if (delta.reasoning_content) write("thinking", delta.reasoning_content);
    if (delta.content) write("content", delta.content);
    for (const call of delta.tool_calls ?? []) write("call", `${call.function?.name ? `\n${call.function.name} ` : ""}${call.function?.arguments ?? ""}`);
  }
}

async function run() {
  if (running) return;
  running = new AbortController();
  $("stop").disabled = false;
  $("answer").replaceChildren();
  $("facts").textContent = "";
  const tracing = $("tracing").checked;
  if (tracing) trace.clear();
  const begin = performance.now();
  let usage = null;
  let reason = null;
  await guarded(async () => {
    const body = {
      ...request(),
      stream: true,
      stream_options: { include_usage: true },
      ...(tracing ? { interlock: { trace: true } } : {}),
    };
    const response = await api("/v1/chat/completions", { method: "POST", body, signal: running.signal });
    for await (const chunk of events(response)) {
      take(chunk);
      usage = chunk.usage ?? usage;
      reason = chunk.choices?.[0]?.finish_reason ?? reason;
    }
  });
  const seconds = (performance.now() - begin) / 1000;
  const count = usage?.completion_tokens ?? 0;
  $("facts").textContent = `${reason ?? "stopped"}, ${count} tokens, ${seconds.toFixed(1)} s`;
  $("stop").disabled = true;
  running = null;
}

let checking = 0;
function checkSoon() {
  clearTimeout(checking);
  checking = setTimeout(check, 250);
}

function example(checks = true) {
  const value = EXAMPLES[$("kind").value];
  $("constraint").value = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  $("constraint-label").hidden = $("kind").value === "free";
  $("constraint-label").firstElementChild.textContent = { schema: "Schema", regex: "Regular expression" }[$("kind").value] ?? "Tools";
  if (checks) check();
  else report([], "the model is not loaded; typing or running loads it", true);
}

$("ask").addEventListener("submit", (event) => { event.preventDefault(); run(); });
$("kind").addEventListener("change", () => example());
for (const id of ["constraint", "message", "system"]) $(id).addEventListener("input", checkSoon);
$("model").addEventListener("change", check);
$("prompt-details").addEventListener("toggle", () => $("prompt-details").open && preview());
$("stop").addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  if (event.key === "Escape") running?.abort();
});

// ---- live requests

async function poll() {
  if ($("requests").hidden) return;
  await guarded(async () => {
    const { requests, engine } = await (await api("/admin/api/requests")).json();
    $("engine").textContent = engine ? engineLine(engine) : "A worker does not answer.";
    $("no-live").hidden = requests.length > 0;
    $("live").tBodies[0].replaceChildren(...requests.map(liveRow));
  });
  setTimeout(poll, 1000);
}

function engineLine(engine) {
  const kept = `${(engine.prompt_cache_bytes / 2 ** 20).toFixed(1)} MiB of saved prompts`;
  const moved = `${engine.num_states_saved} saved, ${engine.num_states_restored} restored (${engine.num_restored_tokens} tokens), ${engine.num_states_evicted} dropped`;
  return `${engine.num_running} of ${engine.num_slots} slots in use, ${engine.num_waiting} waiting; ${engine.num_cached_tokens} tokens of prompts were there already; ${kept}: ${moved}.`;
}

function liveRow(request) {
  const line = element("tr");
  const age = `${Math.max(0, Date.now() / 1000 - request.started).toFixed(0)} s`;
  const cells = [request.request_id, request.model, request.phase, request.constraint || "none", request.num_prompt_tokens, request.num_tokens, request.tokens_per_s.toFixed(1), age];
  line.append(...cells.map((cell, at) => element("td", String(cell), at > 3 ? { class: "number" } : {})));
  const cancel = element("button", "Cancel", { type: "button", class: "small" });
  cancel.addEventListener("click", () => guarded(() => api(`/admin/api/requests/${encodeURIComponent(request.request_id)}/cancel`, { method: "POST", body: {} })));
  const cell = element("td");
  cell.append(cancel);
  line.append(cell);
  return line;
}

// ---- start

const settings = createSettings($, { api, guarded, element });

async function load() {
  let isLoaded = true;
  await guarded(async () => {
    const { models } = await (await api("/admin/api/models")).json();
    for (const id of ["model", "settings-model"]) $(id).replaceChildren(...models.map((model) => element("option", model.id, { value: model.id })));
    settings.show(models);
    isLoaded = models[0]?.phase !== "unloaded"; // a look at the page loads nothing
  });
  example(isLoaded);
}

$("key").value = sessionStorage.getItem("interlock-key") ?? "";
$("key").addEventListener("change", () => { sessionStorage.setItem("interlock-key", $("key").value); load(); });
show(TABS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "playground");
load();
