// A document's text beside what cites it, scrolled to the place and marked.
import { documentText } from "./api.js";
import { fill, h, icon } from "./dom.js";
import { markdown } from "./markdown.js";
import { t } from "./words.js";

const panel = document.getElementById("source");
const AROUND = 60_000; // characters on each side of the place that are shown of a long text
const RENDERED = /\.(md|markdown|html?|xhtml|docx|pptx|xlsx)(\.gz)?$|(^|\/)README$/i; // stored as Markdown
let opened = null; // what opened the panel, and has the focus again when it closes

export function closeSource() {
  if (panel.hidden) return;
  panel.hidden = true;
  panel.replaceChildren();
  unmark();
  if (opened?.isConnected) opened.focus({ preventScroll: true });
}

const unmark = () => document.querySelectorAll(".cite[aria-current]").forEach((mark) => mark.removeAttribute("aria-current"));

/** Open a document, without a place. */
export const openDocument = (workspace, document_) => show(workspace, { document: document_ }, [], document.activeElement);

/** Open a place {document, start, end} in a document, in code points. */
export const openPlace = (workspace, place) => show(workspace, place, [], document.activeElement);

/** Open the citation number `at` of an answer; buttons lead to the one before and after it. */
export async function openSource(workspace, { citations, at, opener = document.activeElement }) {
  await show(workspace, citations[at], citations, opener, (step) => openSource(workspace, { citations, at: at + step, opener }), at);
  unmark();
  if (opener.classList.contains("cite")) opener.setAttribute("aria-current", "true");
}

async function show(workspace, place, citations, opener, go = null, at = 0) {
  opened = opener;
  const source = await documentText(workspace, place.document);
  const span = place.end === undefined ? null : place;
  const others = citations.filter((other) => other !== place && other.document === place.document);
  const spans = [...others.map((other) => ({ ...other, name: "mark" })), ...(span ? [{ ...span, name: "mark.here" }] : [])];
  const points = [...source.text];
  const from = span ? Math.max(0, span.start - AROUND) : 0;
  const until = Math.min(points.length, (span?.end ?? 0) + AROUND);
  const inside = spans.filter(({ start, end }) => start >= from && end <= until).map((row) => ({ ...row, start: row.start - from, end: row.end - from }));
  const text = points.slice(from, until).join("");
  const body = RENDERED.test(source.document) ? markdown(text, { marks: inside }) : marked([...text], inside);
  const words = h(RENDERED.test(source.document) ? ".text.rendered" : ".text", { tabindex: "0", lang: source.language }, from > 0 && "… ", body, until < points.length && " …");
  const step = (way, name, words_) => h("button.plain", { onclick: () => go(way), disabled: !citations[at + way], "aria-label": t(words_), title: t(words_) }, icon(name));
  const steps = go && citations.length > 1 && [step(-1, "left", "previous"), h("small", {}, `${at + 1} / ${citations.length}`), step(1, "right", "next")];
  const about = [source.document, place.page && t("page_n", { n: place.page })].filter(Boolean).join(", ");
  const close = h("button.plain", { onclick: closeSource, "aria-label": t("close"), title: t("close") }, icon("close"));
  panel.setAttribute("aria-label", t("source"));
  panel.hidden = false;
  fill(panel, h("header", {}, h("div", {}, h("h2", {}, source.title || source.document), h("small", {}, about)), steps, close), words);
  const target = panel.querySelector("mark.here");
  if (target) target.scrollIntoView({ block: "center" });
  else panel.scrollTop = 0;
  close.focus({ preventScroll: true });
}

/** A text with marks; where marks overlap, the last one wins. */
function marked(points, spans) {
  const edges = [...new Set([0, points.length, ...spans.flatMap(({ start, end }) => [start, end])])].sort((a, b) => a - b);
  return edges.slice(1).map((end, index) => {
    const start = edges[index];
    const text = points.slice(start, end).join("");
    const over = spans.filter((other) => other.start <= start && end <= other.end).at(-1);
    return over ? h(over.name, {}, text) : text;
  });
}
