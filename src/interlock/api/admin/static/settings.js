// The settings of a model: one field for each key that the server lists.
const CHOICES = {
  tool_constraints: ["auto", "all", "off"],
  schema_mode: ["exact", "relaxed"],
  property_order: ["declared", "any"],
  whitespace: ["fixed", "flexible"],
  grammar_syntax: ["lark", "gbnf", "ebnf"],
  open_objects: ["true", "false"],
};
const TEXTS = ["family", "reasoning_parser", "grammar", "aliases"];
const GROUPS = {
  "Family and thinking": ["family", "reasoning_parser", "thinking_budget"],
  "What answers are held to": ["tool_constraints", "schema_mode", "open_objects", "property_order", "whitespace", "grammar", "grammar_syntax"],
  "Names": ["aliases"],
  "Where a request says nothing": [], // all others
};

export function createSettings($, { api, guarded, element }) {
  let models = [];
  let parsers = { reasoning_parsers: [], families: [] };

  function field(key, value) {
    const label = element("label", key.replaceAll("_", " "));
    let input;
    const listed = { family: parsers.families, reasoning_parser: parsers.reasoning_parsers }[key];
    if (listed || CHOICES[key]) {
      input = element("select");
      input.append(element("option", "server default", { value: "\u0000" }));
      const options = listed ?? CHOICES[key].map((one) => ({ value: one, label: one }));
      input.append(...options.map((one) => element("option", one.label, { value: one.value })));
      input.value = value === null ? "\u0000" : String(value);
    } else {
      input = element(key === "grammar" ? "textarea" : "input");
      if (!TEXTS.includes(key)) input.type = "number", input.step = "any";
      input.placeholder = "server default";
      input.value = value === null ? "" : Array.isArray(value) ? value.join(", ") : String(value);
    }
    input.name = key;
    if (value !== null) input.className = "changed";
    label.append(input);
    return label;
  }

  function read(input) {
    const text = input.value;
    if (text === "\u0000" || (text === "" && input.tagName !== "SELECT")) return null;
    if (input.name === "aliases") return text.split(",").map((one) => one.trim()).filter(Boolean);
    if (input.name === "open_objects") return text === "true";
    return input.type === "number" ? Number(text) : text;
  }

  function draw() {
    const model = models.find((one) => one.id === $("settings-model").value);
    if (!model) return;
    $("overview").tBodies[0].replaceChildren(...models.map((one) => overview(one, one === model)));
    $("family-problems").replaceChildren(...model.problems.map((problem) => element("li", problem)));
    const grouped = Object.values(GROUPS).flat();
    const groups = Object.entries(GROUPS).map(([title, keys]) => {
      const own = keys.length ? keys : Object.keys(model.settings).filter((key) => !grouped.includes(key));
      const set = element("fieldset");
      set.append(element("legend", title), ...own.map((key) => field(key, model.settings[key])));
      return set;
    });
    const end = element("div", "", { class: "end" });
    end.append(element("button", "Save", { class: "primary" }), element("span", "", { id: "saved", role: "status", class: "good" }));
    $("settings").replaceChildren(...groups, end);
  }

  function overview(model, isShown) {
    const row = element("tr", "", { "aria-current": String(isShown) });
    const cells = [model.id, model.phase, model.family, (model.settings.aliases ?? []).join(", ")];
    row.append(...cells.map((cell) => element("td", cell)));
    row.addEventListener("click", () => { $("settings-model").value = model.id; draw(); });
    return row;
  }

  async function refresh() {
    const chosen = $("settings-model").value;
    models = (await (await api("/admin/api/models")).json()).models;
    $("settings-model").value = chosen;
    draw();
  }

  $("settings-model").addEventListener("change", draw);
  $("settings").addEventListener("submit", async (event) => {
    event.preventDefault();
    const model = models.find((one) => one.id === $("settings-model").value);
    const body = Object.fromEntries([...$("settings").elements].filter((one) => one.name).map((one) => [one.name, read(one)]));
    $("saved").textContent = "";
    await guarded(async () => {
      await api(`/admin/api/models/${encodeURIComponent(model.id)}/settings`, { method: "PUT", body });
      await refresh();
      $("saved").textContent = "Saved. New requests use it.";
    });
  });

  return {
    async show(found) {
      models = found;
      await guarded(async () => { parsers = await (await api("/admin/api/grammar/parsers")).json(); });
      draw();
    },
  };
}
