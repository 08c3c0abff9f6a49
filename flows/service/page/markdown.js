// Markdown as elements. A document's or a model's HTML stays the text that it is; images and foreign schemes too.
import { h } from "./dom.js";

// Signs of the private use area stand where marks begin and end: of sentences that no source supports, of the places that
// are cited, and of the one that is open.
const KINDS = [["\uE000", "\uE001", "span.unsupported"], ["\uE002", "\uE003", "mark"], ["\uE004", "\uE005", "mark.here"]];
const INLINE =
  / -\[([^\]\n]{1,200})\]-> |(`+)([^`]+?)\2|\*\*(\S(?:.*?\S)?)\*\*|\*(\S(?:.*?\S)?)\*|\[([^\][]+)\]\((https?:\/\/[^\s)]+)\)|(\[[^\s\][]{1,12}\])|(https?:\/\/[^\s<>"'）。，\uE000-\uE005]+)/s;
const WRAPPED = 60; // characters: a line of so many goes on in the next, a shorter one ends there
const OPENING = /^([\uE000-\uE005]+)(\s*(?:[-*+•]|\d{1,4}[.)])\s+|#{1,6}\s+|>\s?|\|)/; // a mark belongs behind what opens its line
const BULLET = /^(\s*)(?:[-*+•]|(\d{1,4})[.)])\s+(.*)$/;

/**
 * The text as a list of blocks. `cite(marker)` gives the element of a marker such as [1], or null where it is none;
 * `flags` are spans, in code points, that no source supports, `marks` spans {start, end, name} of cited places.
 */
export function markdown(text, { cite = () => null, flags = [], marks = [] } = {}) {
  const points = [...text.replace(/[\uE000-\uE005]/g, " ")];
  const spans = [...flags.map((flag) => ({ ...flag, name: "span.unsupported" })), ...marks];
  const edges = spans.flatMap(({ start, end, name }) => {
    const [on, off] = KINDS.find((kind) => kind[2] === name);
    return [[start, on], [end, off]];
  });
  for (const [place, sign] of edges.sort((a, b) => b[0] - a[0])) points.splice(place, 0, sign);
  const lines = points.join("").split("\n").map((line) => line.replace(OPENING, "$2$1"));
  return blocks(lines, { cite, on: new Set() });
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
    const bare = line.replace(/[\uE000-\uE005]/g, "").trim();
    const fence = bare.match(/^(```+|~~~+)/);
    const heading = line.match(/^(#{1,6})\s+(.*)$/);
    if (!bare) {
      inline(line, state);
      place += 1;
    } else if (fence) {
      plain(line, state);
      place += 1;
      const code = take((other) => !other.trim().startsWith(fence[1]));
      place += 1;
      out.push(h("pre", {}, h("code", {}, plain(code.join("\n"), state))));
    } else if (heading) {
      place += 1;
      out.push(h(`h${Math.min(heading[1].length + 2, 6)}`, {}, inline(heading[2], state)));
    } else if (/^([-*_])\s*(\1\s*){2,}$/.test(bare)) {
      place += 1;
      out.push(h("hr"));
    } else if (bare.startsWith("|") && /^\|?[\s:|-]+\|[\s:|-]*$/.test(lines[place + 1] ?? "")) {
      out.push(table(take((other) => other.replace(/[\uE000-\uE005]/g, "").trim().startsWith("|")), state));
    } else if (bare.startsWith(">")) {
      const quoted = take((other) => /^\s*>/.test(other));
      out.push(h("blockquote", {}, blocks(quoted.map((row) => row.replace(/^\s*> ?/, "").replace(OPENING, "$2$1")), state)));
    } else if (BULLET.test(line)) {
      out.push(list(take((other, index) => index === 0 || BULLET.test(other) || /^\s{2,}\S/.test(other)), state));
    } else {
      const own = (other, index) =>
        index === 0 || (other.trim() && !BULLET.test(other) && !/^(#{1,6}\s|>|```|\|)/.test(other));
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
  const cells = (line) => line.trim().replace(/^\|/, "").replace(/\|$/, "").split(/(?<!\\)\|/);
  const row = (tag) => (line) => h("tr", {}, cells(line).map((cell) => h(tag, {}, inline(cell.trim().replaceAll("\\|", "|"), state))));
  const [head, divider, ...body] = lines;
  const top = row("th")(head);
  plain(divider, state);
  return h(".table", {}, h("table", {}, h("thead", {}, top), h("tbody", {}, body.map(row("td")))));
}

function inline(text, state) {
  const out = [];
  let rest = text;
  for (let match = INLINE.exec(rest); match; match = INLINE.exec(rest)) {
    out.push(plain(rest.slice(0, match.index), state));
    const [whole, relation, , code, strong, emphasis, label, target, marker, address] = match;
    const cited = marker && state.cite(marker);
    if (relation) out.push(h("span.quiet", {}, ` ${relation} `));
    else if (code) out.push(h("code", {}, plain(code, state)));
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

/** Text, in pieces where marks begin and end. */
function plain(text, state) {
  return text.split(/([\uE000-\uE005])/).map((piece) => {
    for (const [on, off, name] of KINDS) {
      if (piece === on) state.on.add(name);
      else if (piece === off) state.on.delete(name);
      else continue;
      return null;
    }
    const name = ["mark.here", "mark", "span.unsupported"].find((kind) => state.on.has(kind));
    return name ? h(name, {}, piece) : piece;
  });
}
