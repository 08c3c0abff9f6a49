// A document's text beside what cites it, scrolled to the place and marked.
import { documentText } from "./api.js";
import { fill, h, icon } from "./dom.js";
import { t } from "./words.js";

const panel = document.getElementById("source");
const AROUND = 60_000; // characters on each side of the place that are shown of a long text
let opener = null;

export function closeSource() {
  if (panel.hidden) return;
  panel.hidden = true;
  panel.replaceChildren();
  document.querySelectorAll(".cite[aria-current]").forEach((mark) => mark.removeAttribute("aria-current"));
  if (opener?.isConnected) opener.focus({ preventScroll: true });
}

/** Open a document at a span {start, end} in code points; `others` are marked more quietly. */
export async function openSource(workspace, document_, span = null, others = []) {
  opener = document.activeElement;
  const source = await documentText(workspace, document_);
  const points = [...source.text];
  const from = span ? Math.max(0, span.start - AROUND) : 0;
  const until = Math.min(points.length, (span?.end ?? 0) + AROUND);
  const body = h(".text", { tabindex: "0", lang: source.language }, from > 0 && "… ", marked(points, from, until, span, others), until < points.length && " …");
  const about = [source.document, span?.page && t("page_n", { n: span.page })].filter(Boolean).join(", ");
  const close = h("button.plain", { onclick: closeSource, "aria-label": t("close"), title: t("close") }, icon("close"));
  panel.setAttribute("aria-label", t("source"));
  panel.hidden = false;
  fill(panel, h("header", {}, h("div", {}, h("h2", {}, source.title || source.document), h("small", {}, about)), close), body);
  const target = panel.querySelector("mark.here");
  if (target) target.scrollIntoView({ block: "center" });
  else panel.scrollTop = 0;
  close.focus({ preventScroll: true });
}

/** The text between two offsets, with marks; where marks overlap, the one asked for wins. */
function marked(points, from, until, span, others) {
  const spans = [...others.map((other) => ({ ...other, name: "mark" })), ...(span ? [{ ...span, name: "mark.here" }] : [])];
  const edges = [...new Set([from, until, ...spans.flatMap(({ start, end }) => [start, end])])]
    .filter((edge) => edge >= from && edge <= until)
    .sort((a, b) => a - b);
  return edges.slice(1).map((end, index) => {
    const start = edges[index];
    const text = points.slice(start, end).join("");
    const over = spans.filter((other) => other.start <= start && end <= other.end).at(-1);
    return over ? h(over.name, {}, text) : text;
  });
}
