// Graph: a picture of entities and relations, what is known of one, paths, and corrections by hand.
import { about, changeGraph, edits, entity, findEntities, paths, picture, place, undoEdit } from "./api.js";
import { confirmed, fill, h, icon, notify, s } from "./dom.js";
import { openSource } from "./source.js";
import { number, t } from "./words.js";

const HUES = [160, 28, 212, 335, 265, 88, 185, 5, 45, 300];
const SHOWN = 12;
const LONGEST = 32; // characters of a name in the picture
const WAIT = 150; // ms after the last key

const colour = (community) => (community < 0 ? "hsl(210 6% 60%)" : `hsl(${HUES[community % HUES.length]} 45% ${52 + 9 * (Math.floor(community / HUES.length) % 3)}%)`);

export async function graph(main, workspace, [name, other]) {
  if (!(await about(workspace)).generation) return fill(main, empty(workspace));
  const map = h(".picture", {}, h("p.empty", {}, t("loading")));
  const details = h("aside.details", { "aria-live": "polite" }, h("p.quiet", {}, t("pick")));
  const go = (...rest) => (location.hash = place(workspace, "graph", ...rest));
  fill(main, h(".graph", {}, finder(workspace, name, other, go), map, details));
  const drawn = picture(workspace, name).then((drawing) => draw(map, drawing, name, go), (error) => fill(map, h("p.empty", {}, error.message)));
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

function draw(box, { nodes, edges, cut }, chosen, go) {
  if (!nodes.length) return fill(box, h("p.empty", {}, t("no_graph")));
  const { width, height } = box.getBoundingClientRect();
  const margin = 46;
  const at = new Map(nodes.map((node) => [node.id, { x: margin + node.x * (width - 2 * margin), y: margin + node.y * (height - 2 * margin) }]));
  const most = Math.max(...nodes.map((node) => node.degree), 1);
  const lines = edges.map((edge) => {
    const [a, b] = [at.get(edge.source), at.get(edge.target)];
    return s("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y, "stroke-width": Math.min(1 + Math.log2(1 + edge.weight) / 2, 4) });
  });
  const radiusOf = (node) => 4 + 12 * Math.sqrt(node.degree / most);
  const named = labelled(nodes, at, radiusOf, chosen);
  const circles = nodes.map((node, rank) => {
    const { x, y } = at.get(node.id);
    const radius = radiusOf(node);
    const open = () => go(node.name);
    return s(
      "g", { class: `node${named.has(node) ? "" : " minor"}`, tabindex: 0, role: "link", "aria-label": node.name, transform: `translate(${x} ${y})`,
        onclick: open, onkeydown: (event) => event.key === "Enter" && open(), onpointerenter: (event) => event.buttons || light(rank), onpointerleave: (event) => event.buttons || light(chosenRank), onfocus: () => light(rank), onblur: () => light(chosenRank) },
      s("circle", { r: radius, fill: colour(node.community) }), s("text", { y: -radius - 4 }, shortened(node.name)), s("title", {}, `${node.name} (${node.kind})`),
    );
  });
  const chosenRank = nodes.findIndex((node) => node.name === chosen);
  const light = (rank) => {
    const id = nodes[rank]?.id;
    const near = new Set([id]);
    edges.forEach((edge, index) => {
      const touches = edge.source === id || edge.target === id;
      if (touches) near.add(edge.source).add(edge.target);
      lines[index].classList.toggle("lit", touches);
      lines[index].classList.toggle("dim", id !== undefined && !touches);
    });
    circles.forEach((circle, index) => {
      circle.classList.toggle("lit", index === rank || index === chosenRank);
      circle.classList.toggle("beside", id !== undefined && near.has(nodes[index].id));
      circle.classList.toggle("dim", id !== undefined && !near.has(nodes[index].id));
    });
  };
  const room = s("g", {}, s("g", {}, lines), s("g", {}, circles));
  const map = s("svg", { class: "map", role: "group", "aria-label": t("graph") }, room);
  const zoom = movable(map, room, width, height);
  const words = t(cut ? "legend_cut" : "legend", { n: nodes.length, m: edges.length });
  const button = (name, label, act) => h("button", { onclick: act, title: t(label), "aria-label": t(label) }, icon(name));
  const buttons = h(".zoom", {}, button("plus", "zoom_in", () => zoom.by(1.4)), button("minus", "zoom_out", () => zoom.by(1 / 1.4)), button("fit", "zoom_fit", zoom.fit));
  fill(box, map, h(".legend", {}, words), buttons);
  light(chosenRank);
}

const boxOf = ({ x, y }, radius) => ({ left: x - radius, right: x + radius, top: y - radius + 2, bottom: y + radius });
const shortened = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

/** The nodes whose names fit beside those of more connected ones. */
function labelled(nodes, at, radiusOf, chosen) {
  const named = new Set();
  const taken = nodes.map((node) => boxOf(at.get(node.id), radiusOf(node)));
  for (const node of [...nodes].sort((a, b) => (b.name === chosen) - (a.name === chosen))) {
    const { x, y } = at.get(node.id);
    const [half, bottom] = [shortened(node.name).length * 3.4 + 4, y - radiusOf(node) - 2];
    const box = { left: x - half, right: x + half, top: bottom - 14, bottom };
    const free = (other) => box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom;
    if (node.name === chosen || taken.every(free)) named.add(node) && taken.push(box);
  }
  return named;
}

/** Let a drawing be dragged, and zoomed with the wheel, two fingers or keys. */
function movable(map, room, width, height) {
  let [x, y, scale] = [0, 0, 1];
  const fingers = new Map();
  const apply = () => {
    room.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    room.style.fontSize = `${12 / scale}px`;
    map.classList.toggle("near", scale > 2.2);
  };
  const by = (factor, centreX = width / 2, centreY = height / 2) => {
    const next = Math.min(Math.max(scale * factor, 0.4), 12);
    x = centreX - ((centreX - x) * next) / scale;
    y = centreY - ((centreY - y) * next) / scale;
    scale = next;
    apply();
  };
  const fit = () => {
    [x, y, scale] = [0, 0, 1];
    apply();
  };
  map.addEventListener("wheel", (event) => {
    event.preventDefault();
    by(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }, { passive: false });
  map.addEventListener("pointerdown", (event) => fingers.set(event.pointerId, event));
  map.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
    if (other) {
      const apart = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY) || 1;
      by(apart(event) / apart(before));
    } else {
      x += event.clientX - before.clientX;
      y += event.clientY - before.clientY;
      apply();
    }
    fingers.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) map.addEventListener(end, (event) => fingers.delete(event.pointerId));
  map.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (event.key === "+" || event.key === "-") by(event.key === "+" ? 1.3 : 1 / 1.3);
    else if (moves[event.key]) {
      event.preventDefault();
      x += moves[event.key][0];
      y += moves[event.key][1];
      apply();
    }
  });
  apply();
  return { by, fit };
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
  h("button.quote", { onclick: () => openSource(workspace, place_.document, place_) }, place_.quote || place_.title, h("small", {}, place_.title || place_.document));

function known(row, workspace, go) {
  const relation = (item) => {
    const end = h("button.link", { onclick: () => go(item.other) }, item.other);
    const words = item.direction === "out" ? [h("em", {}, `${item.predicate} → `), end] : [end, h("em", {}, ` ${item.predicate} →`)];
    return h("li.relation", {}, h("span.fact", {}, words), item.statements.length > 0 && h("details", {}, h("summary", {}, t(item.statements.length > 1 ? "sources_n" : "source_1", { n: item.statements.length })), item.statements.map((statement) => quote(statement, workspace))));
  };
  const claim = (item) => h("li.relation", {}, item.description, h("small", {}, ` ${[item.kind, item.status, item.since, item.until].filter(Boolean).join(", ")}`), item.quote && quote(item, workspace));
  return h(
    "section", {}, h("h2", {}, row.name, " ", h("span.chip", {}, row.kind)), row.description && h("p", {}, row.description),
    h("p.quiet", {}, t("mentions", { n: number(row.occurrences), d: number(row.documents) })),
    row.aliases.length > 0 && h("p.quiet", {}, `${t("also")}: ${row.aliases.map((alias) => alias.name).join(", ")}`),
    h(".row", {}, h("button", { onclick: () => merge(row, workspace, go) }, t("merge")), h("button", { onclick: () => split(row, workspace, go) }, t("split"))),
    row.relations.length > 0 && [h("h3", {}, t("relations")), listed(row.relations, relation)],
    row.claims.length > 0 && [h("h3", {}, t("claims")), listed(row.claims, claim)],
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
