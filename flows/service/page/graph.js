// Graph: a picture of entities and relations, what is known of one, paths, and corrections by hand.
import { about, changeGraph, edits, entity, findEntities, paths, picture, place, undoEdit } from "./api.js";
import { confirmed, fill, h, notify } from "./dom.js";
import { colour, draw } from "./picture.js";
import { openPlace } from "./source.js";
import { number, t } from "./words.js";

const SHOWN = 12;
const WAIT = 150; // ms after the last key
const [FEW, MANY] = [150, 500]; // entities in a picture

export async function graph(main, workspace, [name, other]) {
  if (!(await about(workspace)).generation) return fill(main, empty(workspace));
  const map = h(".picture", {}, h("p.empty", {}, t("loading")));
  const details = h("aside.details", { "aria-live": "polite" }, h("p.quiet", {}, t("pick")));
  const go = (...rest) => (location.hash = place(workspace, "graph", ...rest));
  fill(main, h(".graph", {}, finder(workspace, name, other, go), map, details));
  const drawn = showPicture(map, workspace, name, other, go);
  if (other) await showPath(details, workspace, name, other, go);
  else if (name) await showEntity(details, workspace, name, go);
  else await showEdits(details, workspace);
  await drawn;
}

function finder(workspace, name, other, go) {
  const [from, to] = [field(workspace, "find_entity", name), field(workspace, "find_path", other)];
  const submit = (event) => {
    event.preventDefault();
    const names = [from.input.value.trim(), to.input.value.trim()].filter(Boolean);
    go(...names);
  };
  const whole = h("button", { type: "button", onclick: () => go() }, t("whole"));
  return h("form.finder.row", { onsubmit: submit, role: "search" }, h(".grow", {}, from.element), h(".grow", { hidden: !name }, to.element), h("button.primary", {}, t(name ? "show_path" : "open")), name && whole);
}

/** A field that knows the names of the graph. */
function field(workspace, words, value) {
  const names = h("datalist", { id: `names-${words}` });
  let waiting = 0;
  const input = h("input", { type: "search", value: value ?? "", placeholder: t(words), "aria-label": t(words), list: names.id, autocomplete: "off", style: { width: "100%" }, oninput: () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const text = input.value.trim();
      if (text) fill(names, (await findEntities(workspace, text)).map((row) => h("option", { value: row.name }, row.kind)));
    }, WAIT);
  } });
  return { input, element: h("div", {}, input, names) };
}

// --- the picture ----------------------------------------------------------------------------------------------------

/** The picture of an entity, of the paths between two, or of the most connected, with a button for more of it. */
async function showPicture(box, workspace, name, other, go, most = FEW) {
  try {
    const found = await picture(workspace, name, other, most);
    if (!found.nodes.length) return fill(box, h("p.empty", {}, t("no_graph")));
    const more = found.cut && most < MANY && h("button.link", { onclick: () => showPicture(box, workspace, name, other, go, MANY) }, t("show_n", { n: MANY }));
    const map = h(".canvas");
    const hidden = new Set(); // kinds that are not shown
    const redraw = () => {
      const nodes = found.nodes.filter((node) => !hidden.has(node.kind));
      const ids = new Set(nodes.map((node) => node.id));
      const edges = found.edges.filter((edge) => ids.has(edge.source) && ids.has(edge.target));
      const words = t(found.cut ? "legend_cut" : "legend", { n: nodes.length, m: edges.length });
      const group = (title, place_) => h("li", {}, h("span.dot", { style: { background: colour(place_) } }), title);
      const legend = h(".legend", {}, found.groups.length > 1 && h("ul.plain", {}, found.groups.map(group)), h("span", {}, words), " ", more);
      draw(map, { nodes, edges }, { chosen: found.start.filter((id) => ids.has(id)), walk: other && found.walk, legend, open: (node) => go(node.name), address: (node) => place(workspace, "graph", node.name) });
    };
    const kinds = [...Map.groupBy(found.nodes, (node) => node.kind)].sort((a, b) => b[1].length - a[1].length);
    const toggle = ([kind, nodes]) => h("button.chip", { "aria-pressed": "true", onclick: (event) => {
      hidden.has(kind) ? hidden.delete(kind) : hidden.add(kind);
      event.target.setAttribute("aria-pressed", String(!hidden.has(kind)));
      redraw();
    } }, `${kind} ${nodes.length}`);
    fill(box, map, kinds.length > 1 && h(".kinds", { role: "group", "aria-label": t("kinds") }, kinds.map(toggle)));
    redraw();
  } catch (error) {
    fill(box, h("p.empty", {}, error.message));
  }
}

// --- what is known --------------------------------------------------------------------------------------------------

/** What a room says of a workspace in which nothing is. */
export const empty = (workspace) => h("p.empty", {}, t("nothing"), h("br"), h("a", { href: place(workspace, "documents") }, t("add_documents")));

async function showEntity(details, workspace, name, go) {
  fill(details, h("p.quiet", {}, t("loading")));
  try {
    const view = await entity(workspace, name);
    fill(details, view.entities.map((row) => known(row, workspace, go)), h("hr"), await editList(workspace));
  } catch (error) {
    fill(details, h("p.bad", { role: "alert" }, error.message), h("p.quiet", {}, error.remedy));
  }
}

export const quote = (place_, workspace) =>
  h("button.quote", { onclick: () => openPlace(workspace, place_) }, place_.quote || place_.title, h("small", {}, place_.title || place_.document));

function known(row, workspace, go) {
  const relation = (item) => {
    const end = h("button.link", { onclick: () => go(item.other) }, item.other);
    const words = item.direction === "out" ? [h("em", {}, `${item.predicate} → `), end] : [end, h("em", {}, ` ${item.predicate} →`)];
    return h("li.relation", {}, h("span.fact", {}, words), item.statements.length > 0 && h("details", {}, h("summary", {}, t(item.statements.length > 1 ? "sources_n" : "source_1", { n: item.statements.length })), item.statements.map((statement) => quote(statement, workspace))));
  };
  const claim = (item) => h("li.relation", {}, item.description, h("small", {}, ` ${[item.kind, item.status, item.since, item.until].filter(Boolean).join(", ")}`), item.quote && quote(item, workspace));
  const fact = (item) => h("li.relation", {}, `${item.type}: ${item.object || item.value}`, (item.valid_from || item.valid_to) && h("small", {}, ` ${item.valid_from || ""} – ${item.valid_to || ""}`), item.quote && quote(item, workspace));
  return h(
    "section", {}, h("h2", {}, row.name, " ", h("span.chip", {}, row.kind)), row.description && h("p", {}, row.description),
    h("p.quiet", {}, t("mentions", { n: number(row.occurrences), d: number(row.documents) })),
    row.aliases.length > 0 && h("p.quiet", {}, `${t("also")}: ${row.aliases.map((alias) => alias.name).join(", ")}`),
    h(".row", {}, h("button", { onclick: () => merge(row, workspace, go) }, t("merge")), h("button", { onclick: () => split(row, workspace, go) }, t("split"))),
    row.relations.length > 0 && [h("h3", {}, t("relations")), listed(row.relations, relation)],
    row.claims.length > 0 && [h("h3", {}, t("claims")), listed(row.claims, claim)],
    row.facts.length > 0 && [h("h3", {}, t("facts")), listed(row.facts, fact)],
  );
}

/** The first of many, and a button for the rest. */
export function listed(items, view, most = SHOWN) {
  const list = h("ul.plain", {}, items.slice(0, most).map(view));
  if (items.length <= most) return list;
  const more = h("button.plain", { onclick: () => { list.append(...items.slice(most).map(view)); more.remove(); } }, t("more", { n: number(items.length) }));
  return [list, more];
}

async function showPath(details, workspace, from, to, go) {
  fill(details, h("p.quiet", {}, t("loading")));
  try {
    const found = await paths(workspace, from, to);
    const end = (name) => h("button.link", { onclick: () => go(name) }, name);
    const step = (hop) => h("li.relation", {}, h(".hop", {}, end(hop.source_name), h("em", {}, `${hop.predicate} →`), end(hop.target_name)), hop.statements.slice(0, 2).map((statement) => quote(statement, workspace)));
    const heading = h("h2", {}, `${from} … ${to}`);
    fill(details, heading, found.length ? found.map((path) => h(".card", {}, h("ul.plain", {}, path.steps.map(step)))) : h("p.quiet", {}, t("no_path")));
  } catch (error) {
    fill(details, h("p.bad", { role: "alert" }, error.message), h("p.quiet", {}, error.remedy));
  }
}

// --- corrections ----------------------------------------------------------------------------------------------------

async function showEdits(details, workspace) {
  fill(details, h("p.quiet", {}, t("pick")), h("hr"), await editList(workspace));
}

async function editList(workspace) {
  const rows = await edits(workspace);
  const item = (edit) =>
    h("li.row", {}, h("span.grow.break", {}, edit.words), h("button", { onclick: async (event) => {
      event.target.disabled = true;
      const report = await undoEdit(workspace, edit.id).finally(() => (event.target.disabled = false));
      notify(t("undone", { g: report.generation }));
      dispatchEvent(new HashChangeEvent("hashchange"));
    } }, t("undo")));
  return h("section", { className: "edits" }, h("h3", {}, t("edits")), rows.length ? h("ul.plain", {}, rows.map(item)) : h("p.quiet", {}, t("no_edits")));
}

async function change(workspace, name, body, go) {
  const report = await changeGraph(workspace, body);
  notify(t("edited", { g: report.generation }));
  const before = location.hash;
  go(name);
  if (location.hash === before) dispatchEvent(new HashChangeEvent("hashchange"));
}

async function merge(row, workspace, go) {
  const other = field(workspace, "other", "");
  other.input.name = "other";
  other.input.required = true;
  const body = [h("label", {}, h("span", {}, t("other")), other.element), h("p.quiet", {}, t("merge_hint", { e: row.name }))];
  const values = await confirmed(t("merge_title", { e: row.name }), body, { confirm: t("merge"), cancel: t("cancel") });
  if (values) await change(workspace, row.name, { action: "merge", name: row.id, other: values.other.trim() }, go);
}

async function split(row, workspace, go) {
  const names = [...new Set([row.name, ...row.aliases.map((alias) => alias.name)])];
  const boxes = names.map((name) => h("label.row", {}, h("input", { type: "checkbox", value: name }), name));
  const documents = h("textarea", { name: "documents", rows: 3 });
  const body = [names.length > 1 && h("fieldset", {}, h("legend.quiet", {}, t("split_names")), boxes), h("label", {}, h("span", {}, t("split_documents")), documents)];
  const values = await confirmed(t("split_title", { e: row.name }), body, { confirm: t("split"), cancel: t("cancel") });
  const parted = boxes.map((box) => box.firstChild).filter((box) => box.checked).map((box) => box.value);
  const lines = documents.value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (values) await change(workspace, row.name, { action: "split", name: row.id, names: parted, documents: parted.length ? [] : lines }, go);
}
