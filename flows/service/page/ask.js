// Ask: a conversation whose answers open their sources.
import { about as aboutWorkspace, askStream, keepFeedback, place } from "./api.js";
import { fill, h, icon, notify } from "./dom.js";
import { markdown } from "./markdown.js";
import { openSource } from "./source.js";
import { money, number, t } from "./words.js";

const talks = new Map(); // by workspace: the turns {question, answer}
const key = (workspace) => `trellis-talk ${workspace}`;

function turnsOf(workspace) {
  if (!talks.has(workspace)) talks.set(workspace, JSON.parse(sessionStorage.getItem(key(workspace)) ?? "[]"));
  return talks.get(workspace);
}

function keep(workspace) {
  try {
    sessionStorage.setItem(key(workspace), JSON.stringify(turnsOf(workspace).filter((turn) => turn.answer)));
  } catch {
    sessionStorage.removeItem(key(workspace)); // a conversation too long to keep over a reload
  }
}

export async function ask(main, workspace) {
  const focused = document.activeElement;
  const about = await aboutWorkspace(workspace);
  const talk = h(".talk", { "aria-live": "polite" });
  const turns = turnsOf(workspace);
  const draw = () => fill(talk, turns.length ? turns.map((turn) => view(turn, workspace)) : welcome(about, workspace));
  const input = h("textarea", { rows: 1, "aria-label": t("question"), placeholder: t(turns.length ? "follow_up" : "placeholder") });
  const button = h("button.primary", { "aria-label": t("send"), title: t("send") }, icon("send"));
  const choices = options(about);
  let running = null;

  const submit = async (event) => {
    event?.preventDefault();
    if (running) return running.abort();
    const question = input.value.trim();
    if (!question) return;
    input.value = "";
    input.placeholder = t("follow_up");
    running = new AbortController();
    fill(button, icon("stop")).setAttribute("aria-label", t("stop"));
    // Excerpts say what documents say, and are no turn of a conversation.
    const history = turns.filter((turn) => turn.answer).flatMap((turn) => [
      { role: "user", content: turn.question },
      ...(turn.answer.trace.answered_by === "excerpts" ? [] : [{ role: "assistant", content: turn.answer.answer }]),
    ]);
    const turn = { question };
    turns.push(turn);
    draw();
    const live = talk.lastElementChild;
    live.scrollIntoView({ block: "start" });
    try {
      turn.answer = await follow(askStream(workspace, { question, history, ...choices.values() }, running.signal), live);
    } catch (error) {
      turn.error = error.name === "AbortError" ? { message: t("stopped") } : error;
    }
    running = null;
    fill(button, icon("send")).setAttribute("aria-label", t("send"));
    turn.history = history;
    const whole = view(turn, workspace);
    live.replaceWith(whole);
    whole.scrollIntoView({ block: "start" });
    keep(workspace);
  };
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!running) submit(); // the button stops an answer, a key does not
  });
  const clear = h("button.plain", { type: "button", onclick: () => { running?.abort(); turns.length = 0; keep(workspace); draw(); input.focus(); } }, t("fresh"));
  const form = h("form", { onsubmit: submit }, h(".box", {}, input, button), h(".row", {}, h(".grow", {}, choices.element), clear));
  draw();
  fill(main, h(".ask", {}, talk, h(".composer", {}, form)));
  talk.scrollTop = talk.scrollHeight;
  // Who has moved on with the keyboard meanwhile stays there.
  if ([focused, document.body].includes(document.activeElement)) input.focus();
}

function welcome(about, workspace) {
  if (!about.generation) {
    return h(".welcome", {}, h("h1", {}, t("welcome")), h("p.quiet", {}, t("nothing")), h("p", {}, h("a", { href: place(workspace, "documents") }, t("add_documents"))));
  }
  const hint = t("welcome_hint", { n: number(about.documents), g: about.generation });
  return h(".welcome", {}, h("h1", {}, t("welcome")), h("p.quiet", {}, hint));
}

/** How questions are answered: what is chosen, as the service takes it. */
function options(about) {
  const select = (name, values) => h("select", { name }, values.map(([value, text]) => h("option", { value }, text)));
  const mode = select("mode", about.modes.map((name) => [name, name]));
  const effort = select("effort", [["", t("by_setting")], ...["low", "medium", "high"].map((name) => [name, name])]);
  const where = h("input", { name: "where", placeholder: "year >= 2020" });
  const response = h("input", { name: "response", placeholder: t("response_hint") });
  const field = (words, control) => h("label", {}, h("span", {}, t(words)), control);
  const fields = h(".options", {}, field("mode", mode), field("effort", effort), field("where", where), field("response", response));
  const values = () => ({
    mode: mode.value,
    ...(effort.value && { effort: effort.value }),
    ...(where.value.trim() && { where: where.value.trim() }),
    ...(response.value.trim() && { response: response.value.trim() }),
  });
  return { element: h("details", {}, h("summary", {}, t("options")), fields), values };
}

/** Show the steps and the draft as they come; the whole answer. */
async function follow(events, live) {
  let [draft, whole] = ["", null];
  const steps = live.querySelector(".steps");
  const answer = live.querySelector(".answer");
  for await (const { event, data } of events) {
    if (event === "answer") whole = data;
    else if (event === "step" && data.state === "begins") fill(steps, t(`step_${data.step}`));
    else if (event === "withdrawn") [draft] = ["", fill(answer), fill(steps, t("withdrawn"))];
    else if (event === "text") {
      draft += data.text;
      fill(answer, markdown(draft));
    }
  }
  if (!whole) throw new Error(t("unreachable"));
  return whole;
}

// --- a turn ---------------------------------------------------------------------------------------------------------

function view(turn, workspace) {
  const head = h("h2", {}, turn.question);
  if (turn.error) return h(".turn", {}, head, h("p.bad", { role: "alert" }, turn.error.message), h("p.quiet", {}, turn.error.remedy));
  if (!turn.answer) return h(".turn", {}, head, h(".answer.draft"), h(".steps", {}, t("working")));
  const { answer } = turn;
  const unsupported = answer.grounding.filter((row) => row.supported === false);
  const cites = new Map(answer.citations.map((citation) => [bracketed(citation.marker), citation]));
  const open = (citation) => async (event) => {
    document.querySelectorAll(".cite[aria-current]").forEach((mark) => mark.removeAttribute("aria-current"));
    const button = event.currentTarget;
    const others = answer.citations.filter((other) => other.document === citation.document);
    await openSource(workspace, citation.document, citation, others);
    button.setAttribute("aria-current", "true");
  };
  const bare = (citation) => citation.marker.replace(/^\[|\]$/g, "");
  const button = (citation) =>
    h("button.cite", { title: `${citation.title || citation.document}: ${citation.quote}`, "aria-label": `${t("source")} ${citation.marker}`, onclick: open(citation) }, bare(citation));
  const cite = (marker) => (cites.has(marker) ? button(cites.get(marker)) : null);
  const sources = [...Map.groupBy(answer.citations, (citation) => `${citation.document} ${citation.page ?? ""}`).values()].map((rows) => {
    const [first] = rows;
    const title = `${first.title || first.document}${first.page ? `, ${t("page_n", { n: first.page })}` : ""}`;
    return h("li", {}, h("button.chip", { onclick: open(first), title: first.quote }, h("strong", {}, rows.map(bare).join(" ")), `  ${title}`));
  });
  // In another language than its sources: words tell nothing of it.
  const uncompared = answer.fallback === "ungrounded" && answer.citations.length > 0 && unsupported.length === 0;
  const support = uncompared ? "uncompared" : answer.fallback;
  const quiet = [
    answer.trace.answered_by === "excerpts" ? t(`excerpts_${answer.fallback}`) : t(`supported_${support}`),
    ...answer.trace.ambiguity.map((row) => (row.taken ? t("read_as", row) : t("unclear", row))),
    unsupported.length > 0 && t("not_supported"),
    answer.citations.some((citation) => citation.bound_by === "program") && t("bound_by_program"),
  ].filter(Boolean);
  return h(
    ".turn", {}, head, h(".answer", {}, markdown(answer.answer, { cite, flags: unsupported })),
    sources.length > 0 && h("ul.chips", { "aria-label": t("source") }, sources),
    h(".foot", {}, h("small", {}, quiet.join(" · ")), feedback(turn, workspace)),
    way(answer, workspace),
  );
}

const bracketed = (marker) => (marker.startsWith("[") ? marker : `[${marker}]`);

function feedback(turn, workspace) {
  const { answer } = turn;
  const note = h("input", { name: "note", "aria-label": t("note"), placeholder: t("note") });
  const save = async (helpful, text) => {
    turn.helpful = helpful;
    await keepFeedback(workspace, {
      question: turn.question, answer: answer.answer, helpful, note: text, generation: answer.generation,
      documents: [...new Set(answer.citations.map((citation) => citation.document))],
      history: (turn.history ?? []).map((row) => row.content),
    });
    thumbs.forEach((thumb) => thumb.setAttribute("aria-pressed", String(thumb.value === String(helpful))));
    keep(workspace);
  };
  const form = h("form.row", { hidden: true, onsubmit: async (event) => {
    event.preventDefault();
    await save(turn.helpful, note.value);
    form.hidden = true;
    notify(t("noted"));
  } }, h(".grow", {}, note), h("button", {}, t("save")));
  const thumb = (helpful, name, words) =>
    h("button.plain", { value: String(helpful), title: t(words), "aria-label": t(words), "aria-pressed": String(turn.helpful === helpful), onclick: async () => {
      await save(helpful, "");
      form.hidden = false;
      note.focus();
    } }, icon(name));
  const thumbs = [thumb(true, "up", "helpful"), thumb(false, "down", "unhelpful")];
  const copy = h("button.plain", { onclick: async () => { await navigator.clipboard.writeText(answer.answer); notify(t("copied")); } }, t("copy"));
  return [h("span.buttons", {}, copy, thumbs), form];
}

// --- how it came about ----------------------------------------------------------------------------------------------

function way(answer, workspace) {
  const { trace, usage } = answer;
  const rows = [
    ["rewritten", trace.rewritten !== answer.question && trace.rewritten],
    ["queries", trace.queries.length > 1 && trace.queries.join(" · ")],
    ["chosen", trace.decision ? `${trace.mode}: ${trace.decision.reason}` : trace.mode],
    ["route", `${trace.structure || trace.route.type}: ${trace.route.reason}`],
    ["memory", trace.trigger.some((row) => row.use_memory) && trace.trigger.map((row) => t("remembered", { n: row.pop, m: row.threshold })).join(", ")],
    ["filter", trace.filter.judged.length > 0 && t("filter_counts", { a: trace.filter.entailment, b: trace.filter.neutral, c: trace.filter.contradiction })],
    ["disagree", trace.filter.conflicts.length > 0 && h("ul.plain", {}, trace.filter.conflicts.map((row) => h("li", {}, `${row.document} ≠ ${row.against_document}: ${row.explanation}`)))],
    ["subquestions", trace.subquestions.length > 0 && h("ol", {}, trace.subquestions.map((row) => h("li", {}, row.question, h("br"), h("span.quiet", {}, row.answer))))],
    ["reports_read", trace.reports.some((row) => row.points) && h("ul.plain", {}, trace.reports.filter((row) => row.points).map((row) => h("li", {}, h("a", { href: place(workspace, "reports", row.community) }, row.title))))],
    ["spared", trace.spared.length > 0 && h("ul.plain", {}, trace.spared.map((row) => h("li", {}, `${row.step}: ${row.reason}`)))],
    ["degraded", trace.degraded.length > 0 && h("ul.plain", {}, trace.degraded.map((row) => h("li", {}, `${row.step}: ${row.instead} (${row.reason})`)))],
    ["usage", t("usage_line", { calls: usage.calls, cached: usage.cached_calls, tokens: number(usage.input_tokens + usage.output_tokens), cost: money(usage.cost_usd), seconds: number(usage.seconds, 2) })],
    ["generation", String(answer.generation)],
  ].filter(([, value]) => value);
  const list = h("dl", {}, rows.map(([words, value]) => [h("dt", {}, t(words)), h("dd", {}, value)]));
  const structures = trace.structures.filter((row) => row.text).map((row) =>
    h("details", {}, h("summary", {}, `${row.title || row.document}: ${row.description}`), structure(row.text)),
  );
  return h("details.way", {}, h("summary", {}, t("way")), list, structures);
}

/** A structure's text: triples as a small table, all else as Markdown. */
function structure(text) {
  const triples = text.split("\n").map((line) => line.match(/^(.+?) -\[(.+?)\]-> (.+)$/));
  if (!triples.length || !triples.every(Boolean)) return markdown(text);
  return h(".table", {}, h("table", {}, triples.map(([, from, by, to]) => h("tr", {}, h("td", {}, from), h("td.quiet", {}, by), h("td", {}, to)))));
}
