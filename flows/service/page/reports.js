// Reports: the hierarchy of communities as a tree and as a treemap, down to the statements that they rest on.
import { about, documentList, place, report, reportList } from "./api.js";
import { fill, h } from "./dom.js";
import { empty, listed, quote } from "./graph.js";
import { markdown } from "./markdown.js";
import { openDocument } from "./source.js";
import { number, t } from "./words.js";

let drawn = { workspace: null, rows: [], nav: null, article: null };

export async function reports(main, workspace, [name]) {
  if (!drawn.nav?.isConnected || drawn.workspace !== workspace) {
    const { generation, model } = await about(workspace);
    if (!generation) return fill(main, empty(workspace));
    const [rows, documents] = await Promise.all([reportList(workspace), documentList(workspace)]);
    if (!rows.length) return fill(main, h("p.empty", {}, t("no_reports")));
    const open = (row) => (location.hash = place(workspace, "reports", row.community));
    drawn = { workspace, rows, documents, model, nav: h("nav", { "aria-label": t("reports") }, tree(rows, open)), article: h("article"), open };
    fill(main, h(".reports", {}, drawn.nav, drawn.article));
  }
  const chosen = drawn.rows.find((row) => row.community === name);
  for (const item of drawn.nav.querySelectorAll("[role=treeitem]")) item.setAttribute("aria-selected", String(item.dataset.community === name));
  reveal(drawn.nav.querySelector("[aria-selected=true]"));
  const map = h(".treemap");
  const parent = chosen && (chosen.children.length ? chosen.community : chosen.parent);
  fill(drawn.article, map, h(".body"));
  tile(map, drawn.rows.filter((row) => (row.parent ?? undefined) === (parent ?? undefined)), name, drawn.open);
  const body = drawn.article.lastChild;
  if (name) await showReport(body, workspace, name);
  else fill(body, overview(workspace, drawn));
  drawn.article.scrollTop = 0;
}

/** Topics and documents, for who has opened no report. */
function overview(workspace, { rows, documents, model }) {
  const topic = (row) => h("li", {}, h("a", { href: place(workspace, "reports", row.community) }, row.title), h("small", {}, ` ${t("entities_n", { n: row.members })}`));
  const document_ = (row) => h("li.break", {}, h("button.link", { onclick: () => openDocument(workspace, row.id) }, row.title || row.id));
  return [
    h("p.quiet", {}, model ? "" : t("no_writer"), " ", t("pick_report")),
    h("h2", {}, t("topics")), listed(rows.filter((row) => row.level === 0), topic, 12),
    h("h2", {}, t("documents")), listed(documents, document_, 30),
  ];
}

// --- the tree -------------------------------------------------------------------------------------------------------

function tree(rows, open) {
  const known = new Map(rows.map((row) => [row.community, row]));
  const item = (row, index) => {
    const below = row.children.map((child) => known.get(child)).filter(Boolean);
    const group = below.length > 0 && h("ul", { role: "group", hidden: true }, below.map((child) => item(child, 1)));
    const name = h("button.name", { tabIndex: index === 0 ? 0 : -1, onclick: () => open(row) }, row.title);
    const toggle = h("button.plain", { tabIndex: -1, "aria-label": t("expand"), onclick: () => expand(element, group.hidden) }, group ? "›" : "");
    if (!group) toggle.style.visibility = "hidden";
    const element = h("li", { role: "treeitem", dataset: { community: row.community }, "aria-expanded": group ? "false" : null, "aria-selected": "false" }, h(".line", {}, toggle, name), group);
    return element;
  };
  const roots = rows.filter((row) => !known.has(row.parent));
  return h("ul.tree", { role: "tree", onkeydown: walk }, roots.map(item));
}

function expand(item, opened) {
  item.querySelector(":scope > ul").hidden = !opened;
  item.setAttribute("aria-expanded", String(opened));
  item.querySelector(":scope > .line > button").textContent = opened ? "⌄" : "›";
}

function reveal(item) {
  for (let above = item?.parentElement.closest("[role=treeitem]"); above; above = above.parentElement.closest("[role=treeitem]")) expand(above, true);
  item?.scrollIntoView({ block: "nearest" });
}

/** Arrow keys, as trees have them. */
function walk(event) {
  const names = [...event.currentTarget.querySelectorAll(".name")].filter((name) => name.offsetParent);
  const at = names.indexOf(document.activeElement);
  const item = document.activeElement.closest("[role=treeitem]");
  const group = item?.querySelector(":scope > ul");
  const moves = { ArrowDown: () => names[at + 1], ArrowUp: () => names[at - 1], Home: () => names[0], End: () => names.at(-1) };
  if (moves[event.key]) moves[event.key]()?.focus();
  else if (event.key === "ArrowRight" && group) group.hidden ? expand(item, true) : names[at + 1].focus();
  else if (event.key === "ArrowLeft" && group && !group.hidden) expand(item, false);
  else if (event.key === "ArrowLeft") item?.parentElement.closest("[role=treeitem]")?.querySelector(".name").focus();
  else return;
  event.preventDefault();
}

// --- the treemap (Bruls, Huizing and van Wijk 2000: squarified) -----------------------------------------------------

const LINE = 16.25; // pixels: .8125rem at a height of 1.25

function tile(box, rows, chosen, open) {
  const { width, height } = box.getBoundingClientRect();
  const sizes = [...rows].sort((a, b) => b.members - a.members);
  for (const { row, x, y, w, h: high } of squares(sizes, 0, 0, width, height)) {
    const share = 14 + 5 * Math.min(Math.max(row.rating, 0), 10); // percent of the accent: the more important, the more
    box.append(h("button", {
      title: `${row.title} (${t("entities_n", { n: row.members })})`, "aria-current": row.community === chosen ? "true" : null, onclick: () => open(row),
      style: { left: `${x}px`, top: `${y}px`, width: `${w}px`, height: `${high}px`, background: `color-mix(in oklab, var(--accent) ${share}%, var(--surface))` },
    }, w > 80 && high > 24 && h("span", { style: { webkitLineClamp: Math.floor((high - 10) / LINE) } }, row.title)));
  }
}

function squares(rows, x, y, width, height) {
  const total = rows.reduce((sum, row) => sum + row.members, 0);
  if (!rows.length || !total) return [];
  const unit = (width * height) / total;
  const short = Math.min(width, height);
  const worst = (some) => {
    const area = some.reduce((sum, row) => sum + row.members, 0) * unit;
    const side = area / short;
    return Math.max(...some.map((row) => Math.max(side / ((row.members * unit) / side), (row.members * unit) / side / side)));
  };
  let count = 1;
  while (count < rows.length && worst(rows.slice(0, count + 1)) <= worst(rows.slice(0, count))) count += 1;
  const strip = rows.slice(0, count);
  const side = (strip.reduce((sum, row) => sum + row.members, 0) * unit) / short;
  let along = 0;
  const placed = strip.map((row) => {
    const length = (row.members * unit) / side;
    const tile_ = width >= height ? { row, x, y: y + along, w: side, h: length } : { row, x: x + along, y, w: length, h: side };
    along += length;
    return tile_;
  });
  const rest = width >= height ? [x + side, y, width - side, height] : [x, y + side, width, height - side];
  return [...placed, ...squares(rows.slice(count), ...rest)];
}

// --- one report -----------------------------------------------------------------------------------------------------

async function showReport(body, workspace, name) {
  fill(body, h("p.quiet", {}, t("loading")));
  const view = await report(workspace, name);
  const link = (row) => h("li", {}, h("a", { href: place(workspace, "reports", row.community) }, row.title), h("small", {}, ` ${t("entities_n", { n: row.members })}`));
  const finding = (row) => h("section", {}, h("h3", {}, row.summary), row.explanation !== row.quote && markdown(row.explanation), [row, ...row.others].map((place_) => quote(place_, workspace)));
  const entity = (row) => h("li", {}, h("a.chip", { href: place(workspace, "graph", row.name) }, row.name));
  fill(
    body, view.parent && h("p", {}, "↑ ", h("a", { href: place(workspace, "reports", view.parent.community) }, view.parent.title)),
    h("h1", {}, view.title),
    h("p.quiet", {}, [t("level", { n: view.level }), t("entities_n", { n: view.members.length }), t("rated", { n: number(view.rating, 1) })].join(" · "), view.rating_reason && `: ${view.rating_reason}`),
    markdown(view.summary), view.findings.map(finding),
    view.children.length > 0 && [h("h3", {}, t("within")), h("ul", {}, view.children.map(link))],
    h("h3", {}, t("members")), chips(view.members, entity),
  );
}

function chips(rows, view) {
  const [list, more] = [listed(rows, view, 40)].flat();
  list.className = "chips";
  return [list, more];
}
