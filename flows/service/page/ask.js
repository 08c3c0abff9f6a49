// Ask: conversations whose answers open their sources.
import { about as aboutWorkspace, askStream, conversation, conversationList, deleteConversation, deleteConversations, exampleQuestions, keepFeedback, place, renameConversation } from "./api.js";
import { confirmed, fill, h, icon, notify } from "./dom.js";
import { markdown } from "./markdown.js";
import { openDocument, openSource } from "./source.js";
import { money, number, t, time } from "./words.js";

const MOST_CARDS = 5; // sources that are shown at once
const MOST_NEAREST = 3; // passages beside an answer without sources
const QUOTED = 260; // characters of a quote on a card
const BUDGETS = [100, 500, 1500]; // passages that mode lazy tests

// --- conversations --------------------------------------------------------------------------------------------------

const current = new Map(); // by workspace: the id of the conversation that is open

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Open a conversation that begins, and is kept, with its first answer. */
function begin(main, workspace) {
  current.delete(workspace);
  const wanted = place(workspace, "ask");
  if (location.hash === wanted) ask(main, workspace);
  else location.hash = wanted;
}

/** The turns as a model reads them. Excerpts say what documents say, and are no turn of a conversation. */
const historyOf = (turns) => turns.filter((turn) => turn.answer).flatMap(({ answer }) => [
  { role: "user", content: answer.question },
  ...(answer.trace.answered_by === "excerpts" ? [] : [{ role: "assistant", content: answer.answer }]),
]);

// --- the documents that are asked ----------------------------------------------------------------------------------------

const asked = new Map(); // by workspace: the ids of the documents that alone are searched

/** Begin a conversation that searches these documents alone until its chip is closed. */
export function askOnly(workspace, documents) {
  asked.set(workspace, documents);
  current.delete(workspace);
  location.hash = place(workspace, "ask");
}

function narrowing(main, workspace) {
  const documents = asked.get(workspace);
  if (!documents) return null;
  const widen = () => {
    asked.delete(workspace);
    ask(main, workspace);
  };
  const words = documents.length === 1 ? t("only_one", { d: documents[0] }) : t("only_n", { n: number(documents.length) });
  return h(".chips", {}, h("button.chip", { type: "button", title: documents.join("\n"), "aria-label": `${words} ×`, onclick: widen }, words, " ×"));
}

// --- the room -------------------------------------------------------------------------------------------------------

let latest = null; // the opening of a conversation that began last

export async function ask(main, workspace, [id] = []) {
  const focused = document.activeElement;
  const ours = (latest = {});
  const [about, talks] = await Promise.all([aboutWorkspace(workspace), conversationList(workspace)]);
  const kept = id ?? talks.find((row) => row.id === current.get(workspace))?.id;
  const talk = kept ? await conversation(workspace, kept) : { id: newId(), turns: [] };
  const { turns } = talk;
  const found = turns.length || !about.generation ? [] : await exampleQuestions(workspace);
  if (ours !== latest) return; // another conversation was opened meanwhile
  if (kept) current.set(workspace, kept);
  const talkBox = h(".talk", { "aria-live": "polite" });
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
    const history = historyOf(turns);
    const turn = { question };
    turns.push(turn);
    const typing = document.activeElement === input;
    draw(); // which moves the input, and so takes the keyboard from it
    if (typing || matchMedia("(pointer: fine)").matches) input.focus({ preventScroll: true });
    const live = talkBox.lastElementChild;
    live.scrollIntoView({ block: "start" });
    try {
      turn.answer = await follow(askStream(workspace, { question, history, documents: asked.get(workspace), conversation: talk.id, ...choices.values() }, running.signal), live);
    } catch (error) {
      turn.error = error.name === "AbortError" ? { message: t("stopped") } : error;
    }
    running = null;
    fill(button, icon("send")).setAttribute("aria-label", t("send"));
    const whole = view(turn, talk, workspace);
    live.replaceWith(whole);
    whole.scrollIntoView({ block: "start" });
    if (!turn.answer) return;
    const rows = await conversationList(workspace);
    listTalks(rows);
    if (ours !== latest || !rows.some((row) => row.id === talk.id)) return;
    current.set(workspace, talk.id);
    // The address opens it again; this draws nothing anew.
    if (main.isConnected) window.history.replaceState(null, "", place(workspace, "ask", talk.id));
  };
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!running) submit(); // the button stops an answer, a key does not
  });
  const put = (question) => { input.value = question; submit(); };
  const list = h("nav.talks", { "aria-label": t("conversations") });
  const listTalks = (rows) => fill(list, talkList(rows, talk, workspace, main));
  const form = h("form", { onsubmit: submit }, narrowing(main, workspace), h(".box", {}, input, button), choices.element);
  const composer = h(".composer", {}, form);
  const column = h(".column");
  const draw = () => {
    column.classList.toggle("fresh", !turns.length);
    if (turns.length) fill(column, fill(talkBox, turns.map((turn) => view(turn, talk, workspace))), composer);
    else fill(column, welcome(about, workspace), about.generation && [composer, examples(found, put)]);
  };
  draw();
  listTalks(talks);
  fill(main, h(".ask", {}, list, column));
  talkBox.scrollTop = talkBox.scrollHeight;
  // Who has moved on with the keyboard meanwhile stays there.
  if ([focused, document.body].includes(document.activeElement) || !focused?.isConnected) input.focus();
}

function talkList(rows, talk, workspace, main) {
  if (!rows.length) return null;
  const button = (row, words, name, onclick) => h("button.plain", { onclick, title: t(words), "aria-label": `${t(words)}: ${row.title}` }, icon(name));
  const rename = (row) => async () => {
    const field = h("input", { name: "title", value: row.title, required: true, maxLength: 200, "aria-label": t("rename_talk") });
    const values = await confirmed(t("rename_talk"), [field], { confirm: t("save"), cancel: t("cancel") });
    if (!values?.title.trim()) return;
    await renameConversation(workspace, row.id, values.title);
    fill(list, (await conversationList(workspace)).map(item));
  };
  const drop = (row) => async () => {
    const left = await deleteConversation(workspace, row.id);
    if (row.id === talk.id) begin(main, workspace);
    else fill(list, left.map(item));
  };
  const dropAll = async () => {
    if (!(await confirmed(t("delete_all_talks"), [], { confirm: t("delete_all"), cancel: t("cancel") }, true))) return;
    await deleteConversations(workspace);
    begin(main, workspace);
  };
  const item = (row) => h(
    "li.talk-line", {}, h("a", { href: place(workspace, "ask", row.id), "aria-current": row.id === talk.id ? "true" : null, title: `${row.title}\n${time(row.asked)}` }, row.title),
    button(row, "rename_talk", "pen", rename(row)), button(row, "delete_talk", "close", drop(row)),
  );
  const list = h("ul.plain", {}, rows.map(item));
  return [
    h("button", { onclick: () => begin(main, workspace) }, icon("plus"), " ", t("fresh")), list,
    h("p.quiet", {}, t("kept_here"), " ", h("button.link", { onclick: dropAll }, t("delete_all"))),
  ];
}

function welcome(about, workspace) {
  if (!about.generation) {
    return h(".welcome", {}, h("h1", {}, t("welcome")), h("p.quiet", {}, t("nothing")), h("p", {}, h("a", { href: place(workspace, "documents") }, t("add_documents"))));
  }
  const model = about.model ? t("with_model", { model: about.model }) : t("without_model");
  return h(".welcome", {}, h("h1", {}, t("welcome")), h("p.quiet", {}, t("welcome_hint", { n: number(about.documents) }), " ", model));
}

/** Questions that this index can be asked, made of its best connected names. */
function examples(questions, put) {
  if (!questions.length) return null;
  return h("ul.examples", { "aria-label": t("examples") }, questions.map((question) => h("li", {}, h("button", { type: "button", onclick: () => put(question) }, question))));
}

/** How questions are answered: what is chosen, as the service takes it. */
function options(about) {
  const mode = h("select", { name: "mode" }, about.modes.map((name) => h("option", { value: name }, `${name}: ${t(`mode_${name}`)}`)));
  const effort = h("select", { name: "effort" }, [["", t("by_setting")], ...["low", "medium", "high"].map((name) => [name, t(`effort_${name}`)])].map(([value, text]) => h("option", { value }, text)));
  const budget = h("select", { name: "budget" }, [["", t("by_effort")], ...BUDGETS.map((tests) => [tests, t("tests_n", { n: number(tests) })])].map(([value, text]) => h("option", { value }, text)));
  const where = h("input", { name: "where", placeholder: "year >= 2020" });
  const response = h("input", { name: "response", placeholder: t("response_hint") });
  const field = (words, control) => h("label", {}, h("span", {}, t(words)), control);
  const tests = field("budget", budget);
  const only = () => { tests.hidden = mode.value !== "lazy"; };
  mode.addEventListener("change", only);
  only();
  const fields = h(".options", {}, field("mode", mode), tests, field("effort", effort), field("where", where), field("response", response));
  const values = () => ({
    mode: mode.value,
    ...(!tests.hidden && budget.value && { budget: Number(budget.value) }),
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
  const begun = new Map();
  for await (const { event, data } of events) {
    if (event === "answer") whole = data;
    else if (event === "step" && data.state === "begins") {
      if (!begun.size) fill(steps);
      const line = h("li", { "aria-busy": "true" }, t(`step_${data.step}`));
      begun.set(data.step, line);
      steps.append(line);
    } else if (event === "step") begun.get(data.step)?.removeAttribute("aria-busy");
    else if (event === "withdrawn") {
      draft = "";
      fill(answer);
    } else if (event === "text") {
      draft += data.text;
      fill(answer, markdown(draft));
    }
  }
  if (!whole) throw new Error(t("unreachable"));
  return whole;
}

// --- a turn ---------------------------------------------------------------------------------------------------------

function view(turn, talk, workspace) {
  const head = h("h2", {}, turn.question ?? turn.answer.question);
  if (turn.error) return h(".turn", {}, head, h("p.bad", { role: "alert" }, turn.error.message), h("p.quiet", {}, turn.error.remedy));
  if (!turn.answer) return h(".turn", {}, head, h("ol.steps.plain", {}, h("li", { "aria-busy": "true" }, t("working"))), h(".answer.draft"));
  const { answer } = turn;
  const unsupported = answer.grounding.filter((row) => row.supported === false);
  const cites = new Map(answer.citations.map((citation) => [bracketed(citation.marker), citation]));
  const open = (citation) => (event) => {
    const opener = event.currentTarget;
    return openSource(workspace, { citations: answer.citations, at: answer.citations.indexOf(citation), opener });
  };
  const button = (citation) =>
    h("button.cite", { title: `${citation.title || citation.document}: ${citation.quote}`, "aria-label": `${t("source")} ${citation.marker}`, onclick: open(citation) }, bare(citation));
  const cite = (marker) => (cites.has(marker) ? button(cites.get(marker)) : null);
  const excerpts = answer.trace.answered_by === "excerpts";
  // The badge says what excerpts are; their first line, for the command line, says the same.
  const text = excerpts && cites.size ? answer.answer.replace(/^[^\n]*[:：]\n+/, "") : answer.answer;
  return h(
    ".turn", {}, head, h(excerpts ? ".answer.excerpts" : ".answer", {}, markdown(text, { cite, flags: unsupported })),
    verdict(answer, unsupported), sources(answer, open, workspace), h(".foot", {}, feedback(turn, talk, workspace)), way(answer, workspace),
  );
}

const bracketed = (marker) => (marker.startsWith("[") ? marker : `[${marker}]`);
const bare = (citation) => citation.marker.replace(/^\[|\]$/g, "");

/** The label of an answer as a badge, with the reason beside it. */
function verdict(answer, unsupported) {
  const excerpts = answer.trace.answered_by === "excerpts";
  // In another language than its sources: words tell nothing of it.
  const uncompared = answer.fallback === "ungrounded" && answer.citations.length > 0 && unsupported.length === 0;
  const label = excerpts ? `excerpts_${answer.fallback}` : `supported_${uncompared ? "uncompared" : answer.fallback}`;
  const supported = answer.grounding.filter((row) => row.supported === true).length;
  const colour = excerpts ? "" : { none: ".good", partial: ".warn", ungrounded: uncompared ? ".warn" : ".bad" }[answer.fallback] ?? "";
  const reasons = [
    !excerpts && answer.fallback === "none" && t("reason_supported", { n: supported, m: answer.grounding.length }),
    unsupported.length > 0 && t("not_supported", { n: unsupported.length }),
    answer.citations.some((citation) => citation.bound_by === "program") && t("bound_by_program"),
    ...answer.trace.ambiguity.map((row) => (row.taken ? t("read_as", row) : t("unclear", row))),
  ].filter(Boolean);
  return h(".verdict", {}, h(`span.badge${colour}`, {}, t(label)), reasons.length > 0 && h("small", {}, reasons.join(" ")));
}

/** A card for each document that is cited, with the sentence that was found in it. */
function sources(answer, open, workspace) {
  const groups = [...Map.groupBy(answer.citations, (citation) => citation.document).values()];
  if (!groups.length) return answer.fallback === "ungrounded" && answer.passages.length ? nearest(answer.passages, workspace) : null;
  const card = (rows) => {
    const [first, ...others] = rows;
    const page = first.page ? `, ${t("page_n", { n: first.page })}` : "";
    return h("li", {}, h(
      "button.source", { onclick: open(first) },
      h("span.top", {}, h("strong", {}, first.title || first.document), rows.slice(0, MOST_CARDS).map((row) => h("span.number", {}, bare(row)))),
      h("small", {}, first.document, page), h("span.words", {}, h("mark", {}, cut(first.quote))),
      others.length > 0 && h("small", {}, t("more_places", { n: number(others.length), title: first.title || first.document })),
    ));
  };
  const list = h("ul.sources", { "aria-label": t("sources") }, groups.slice(0, MOST_CARDS).map(card));
  if (groups.length <= MOST_CARDS) return list;
  const more = h("button.plain", { onclick: () => { list.append(...groups.slice(MOST_CARDS).map(card)); more.remove(); } }, t("more", { n: number(groups.length) }));
  return [list, more];
}

/** What was found for an answer that no source supports. */
function nearest(passages, workspace) {
  const card = (passage) => h("li", {}, h(
    "button.source", { onclick: () => openDocument(workspace, passage.document) },
    h("span.top", {}, h("strong", {}, passage.title || passage.document)), h("small", {}, passage.document), h("span.words", {}, cut(passage.text)),
  ));
  return [h("p.quiet", {}, t("nearest")), h("ul.sources", { "aria-label": t("nearest") }, passages.slice(0, MOST_NEAREST).map(card))];
}

const cut = (text) => (text.length > QUOTED ? `${text.slice(0, QUOTED)} …` : text);

function feedback(turn, talk, workspace) {
  const { answer } = turn;
  const note = h("input", { name: "note", "aria-label": t("note"), placeholder: t("note") });
  const save = async (helpful, text) => {
    turn.helpful = helpful;
    await keepFeedback(workspace, {
      question: answer.question, answer: answer.answer, helpful, note: text, generation: answer.generation, conversation: talk.id,
      documents: [...new Set(answer.citations.map((citation) => citation.document))],
      history: historyOf(talk.turns.slice(0, talk.turns.indexOf(turn))).map((row) => row.content),
    });
    thumbs.forEach((thumb) => thumb.setAttribute("aria-pressed", String(thumb.value === String(helpful))));
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
    ["recognition", trace.recognition?.kept.length > 0 && h("ul.plain", {}, trace.recognition.kept.map((row) => h("li", {}, `${row.document}: ${row.text}`)))],
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
