// Markdown as elements. A document's or a model's HTML stays the text that it is; images and foreign schemes too.
import { h } from "./dom.js";

const FLAG = "\uE000";
const UNFLAG = "\uE001";
const INLINE =
  /(`+)([^`]+?)\1|\*\*(\S(?:.*?\S)?)\*\*|\*(\S(?:.*?\S)?)\*|\[([^\][]+)\]\((https?:\/\/[^\s)]+)\)|(\[[^\s\][]{1,12}\])|(https?:\/\/[^\s<>"'）。，\uE000\uE001]+)/s;
const WRAPPED = 60; // characters: a line of so many goes on in the next, a shorter one ends there
const BULLET = /^(\s*)(?:[-*+•]|(\d{1,4})[.)])\s+(.*)$/;

/**
 * The text as a list of blocks. `cite(marker)` gives the element of a marker such as [1], or null where it is none;
 * `flags` are spans, in code points, to be marked as not supported.
 */
export function markdown(text, { cite = () => null, flags = [] } = {}) {
  const points = [...text.replace(/[\uE000\uE001]/g, " ")];
  for (const { start, end } of [...flags].sort((a, b) => b.start - a.start)) {
    points.splice(end, 0, UNFLAG);
    points.splice(start, 0, FLAG);
  }
  return blocks(points.join("").split("\n"), { cite, flagged: false });
}

function blocks(lines, state) {
  const out = [];
  let place = 0;
  const take = (test) => {
    const start = place;
    while (place < lines.length && test(lines[place], place - start)) place += 1;
    return lines.slice(start, place);
  };
  while (place < lines.length) {
    const line = lines[place];
    const bare = line.replace(/[\uE000\uE001]/g, "").trim();
    const fence = bare.match(/^(```+|~~~+)/);
    const heading = line.match(/^([\uE000\uE001]?)(#{1,6})\s+(.*)$/);
    if (!bare) {
      inline(line, state);
      place += 1;
    } else if (fence) {
      place += 1;
      const code = take((other) => !other.trim().startsWith(fence[1]));
      place += 1;
      out.push(h("pre", {}, h("code", {}, code.join("\n"))));
    } else if (heading) {
      place += 1;
      out.push(h(`h${Math.min(heading[2].length + 2, 6)}`, {}, inline(heading[1] + heading[3], state)));
    } else if (/^([-*_])\s*(\1\s*){2,}$/.test(bare)) {
      place += 1;
      out.push(h("hr"));
    } else if (bare.startsWith("|") && /^\|?[\s:|-]+\|[\s:|-]*$/.test(lines[place + 1] ?? "")) {
      out.push(table(take((other) => other.replace(/[\uE000\uE001]/g, "").trim().startsWith("|")), state));
    } else if (bare.startsWith(">")) {
      const quoted = take((other) => /^[\uE000\uE001]?\s*>/.test(other));
      out.push(h("blockquote", {}, blocks(quoted.map((row) => row.replace(/^([\uE000\uE001]?)\s*> ?/, "$1")), state)));
    } else if (BULLET.test(line)) {
      out.push(list(take((other, index) => index === 0 || BULLET.test(other) || /^\s{2,}\S/.test(other)), state));
    } else {
      const own = (other, index) =>
        index === 0 || (other.trim() && !BULLET.test(other) && !/^[\uE000\uE001]?(#{1,6}\s|>|```|\|)/.test(other));
      const rows = take(own);
      out.push(h("p", {}, rows.map((row, index) => [index > 0 && (rows[index - 1].length < WRAPPED ? h("br") : " "), inline(row, state)])));
    }
  }
  return out;
}

function list(lines, state) {
  const first = lines[0].match(BULLET);
  const items = [];
  for (const line of lines) {
    const match = line.match(BULLET);
    if (match && match[1].length <= first[1].length) items.push([match[3]]);
    else items.at(-1).push(line.slice(first[1].length + 2));
  }
  const content = items.map(([head, ...rest]) => h("li", {}, inline(head, state), rest.length ? blocks(rest, state) : null));
  return first[2] ? h("ol", { start: Number(first[2]) }, content) : h("ul", {}, content);
}

function table(lines, state) {
  const cells = (line) => line.trim().replace(/^([\uE000\uE001]?)\|/, "$1").replace(/\|$/, "").split(/(?<!\\)\|/);
  const row = (tag) => (line) => h("tr", {}, cells(line).map((cell) => h(tag, {}, inline(cell.trim().replaceAll("\\|", "|"), state))));
  const [head, , ...body] = lines;
  return h(".table", {}, h("table", {}, h("thead", {}, row("th")(head)), h("tbody", {}, body.map(row("td")))));
}

function inline(text, state) {
  const out = [];
  let rest = text;
  for (let match = INLINE.exec(rest); match; match = INLINE.exec(rest)) {
    out.push(plain(rest.slice(0, match.index), state));
    const [whole, , code, strong, emphasis, label, target, marker, address] = match;
    const cited = marker && state.cite(marker);
    if (code) out.push(h("code", {}, plain(code, state)));
    else if (strong) out.push(h("strong", {}, inline(strong, state)));
    else if (emphasis) out.push(h("em", {}, inline(emphasis, state)));
    else if (cited) out.push(cited);
    else if (marker) out.push(plain(whole, state));
    else out.push(link(target ?? address, label ?? address));
    rest = rest.slice(match.index + whole.length);
  }
  out.push(plain(rest, state));
  return out;
}

const link = (target, label) => h("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, label);

/** Text, in pieces where flags begin and end. */
function plain(text, state) {
  return text.split(/([\uE000\uE001])/).map((piece) => {
    if (piece === FLAG) state.flagged = true;
    else if (piece === UNFLAG) state.flagged = false;
    else if (piece) return state.flagged ? h("span.unsupported", {}, piece) : piece;
    return null;
  });
}
