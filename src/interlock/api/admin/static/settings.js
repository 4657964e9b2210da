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
    $("model-facts").textContent = `${model.phase}, family ${model.family}`;
    const save = element("button", "Save", { class: "primary" });
    $("settings").replaceChildren(...Object.entries(model.settings).map(([key, value]) => field(key, value)), save);
  }

  $("settings-model").addEventListener("change", draw);
  $("settings").addEventListener("submit", async (event) => {
    event.preventDefault();
    const model = models.find((one) => one.id === $("settings-model").value);
    const body = Object.fromEntries([...$("settings").elements].filter((one) => one.name).map((one) => [one.name, read(one)]));
    $("saved").textContent = "";
    await guarded(async () => {
      model.settings = await (await api(`/admin/api/models/${encodeURIComponent(model.id)}/settings`, { method: "PUT", body })).json();
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
