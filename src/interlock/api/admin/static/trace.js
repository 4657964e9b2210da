// The trace view: each token coloured by the probability that the constraint took away.
export function createTrace($) {
  let tokens = [];
  let selected = -1;

  function visible(text) {
    return text.replaceAll("\n", "⏎\n").replaceAll("\t", "⇥") || "·";
  }

  function percent(share) {
    return `${(100 * (share ?? 0)).toFixed(share > 0 && share < 0.001 ? 3 : 1)} %`;
  }

  function draw(token, index) {
    const span = document.createElement("span");
    span.className = `token ${token.source}`;
    span.style.setProperty("--removed", String(token.removed ?? 0));
    span.textContent = visible(token.token);
    span.setAttribute("role", "option");
    span.dataset.index = String(index);
    return span;
  }

  function line(label, text, share) {
    const row = document.createElement("div");
    if (share !== undefined) {
      const bar = document.createElement("span");
      bar.className = "bar";
      bar.style.width = `${Math.max(2, 200 * share)}px`;
      row.append(bar);
    }
    row.append(`${label}${text}`);
    return row;
  }

  function quoted(token) {
    return token ? `${JSON.stringify(token.token)} (${percent(token.probability)})` : "nothing";
  }

  function select(index) {
    if (index < 0 || index >= tokens.length) return;
    $("tokens").children[selected]?.removeAttribute("aria-selected");
    selected = index;
    const token = tokens[index];
    const span = $("tokens").children[index];
    span.setAttribute("aria-selected", "true");
    span.scrollIntoView({ block: "nearest" });
    $("detail").replaceChildren(
      line(`Token ${index + 1}: `, `${quoted(token)}, id ${token.id}, ${token.source}`),
      line("The model wanted ", quoted(token.wanted)),
      line("The constraint took ", `${percent(token.removed)} of the probability and left ${token.num_allowed} ${token.num_allowed === 1 ? "id" : "ids"}`),
      ...(token.allowed ?? []).map((one) => line("", quoted(one), one.probability)),
    );
  }

  function facts() {
    const count = (test) => tokens.filter(test).length;
    const mean = tokens.reduce((sum, token) => sum + (token.removed ?? 0), 0) / (tokens.length || 1);
    $("trace-facts").textContent = `${tokens.length} tokens: ${count((t) => t.source === "forced")} forced, ${count((t) => t.source === "draft")} drafted, ` +
      `${count((t) => t.wanted && t.wanted.id !== t.id)} other than the model wanted; on average ${percent(mean)} of the probability taken away`;
  }

  function clear() {
    tokens = [];
    selected = -1;
    $("tokens").replaceChildren();
    $("detail").textContent = "Point at a token, or walk with the arrow keys.";
    facts();
  }

  function add(more) {
    if (!more.length) return;
    $("tokens").append(...more.map((token, offset) => draw(token, tokens.length + offset)));
    tokens.push(...more);
    facts();
  }

  $("tokens").addEventListener("mouseover", (event) => {
    const index = event.target.dataset.index;
    if (index !== undefined) select(Number(index));
  });
  $("tokens").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    select(Math.min(Math.max(selected + step, 0), tokens.length - 1));
  });
  $("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify({ trace: tokens }, null, 1)], { type: "application/json" }));
    link.download = "trace.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  $("open").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    clear();
    try {
      add(JSON.parse(await file.text()).trace);
    } catch (error) {
      $("detail").textContent = `${file.name} is no trace: ${error.message}`;
    }
    event.target.value = "";
  });
  facts();
  return { add, clear };
}
