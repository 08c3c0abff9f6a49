// Documents: add, follow the run, see what failed and what changed, forget.
import { about, cancelRun, deadLetters, diff, documentList, follow, forgetDocument, generations, indexRuns, retryLetters, startRun, underWay, upload } from "./api.js";
import { askOnly } from "./ask.js";
import { confirmed, fill, h, notify } from "./dom.js";
import { listed } from "./graph.js";
import { openDocument } from "./source.js";
import { money, number, t, time } from "./words.js";

const PAGE = 100;
const running = new Map(); // by workspace: the card of a run under way, and what shows its end in the room that is open

export async function documents(main, workspace) {
  const { generation, sources } = await about(workspace);
  const asked = generation ? [documentList(workspace), deadLetters(workspace), generations(workspace)] : [[], [], []];
  const [rows, letters, numbers] = await Promise.all(asked);
  const again = () => documents(main, workspace);
  const known = running.get(workspace);
  const run = known ?? { card: h("div", { hidden: true }) };
  run.again = again;
  if (!known) {
    running.set(workspace, run);
    const under = (await indexRuns()).find((row) => row.workspace === workspace && underWay(row));
    if (under) index(run, async () => under); // begun elsewhere, or before a reload
  }
  fill(main, h(".sheet", {}, dropZone(workspace, run, sources), run.card, failed(letters, workspace, again), stored(rows, letters, workspace, again), changes(numbers, workspace)));
}

// --- adding ---------------------------------------------------------------------------------------------------------

function dropZone(workspace, run, sources) {
  const start = (files) => files.length && index(run, (show) => uploaded(workspace, files, show));
  const update = h("button", { title: t("update_hint"), onclick: () => index(run, () => startRun(workspace)) }, t("update", { n: number(sources) }));
  const chosen = (event) => start([...event.target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
  const input = (properties) => h("input", { type: "file", multiple: true, hidden: true, onchange: chosen, ...properties });
  const [files, folder] = [input({ id: "files" }), input({ id: "folder", webkitdirectory: true })];
  const zone = h(
    ".drop", {
      ondragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
      ondragleave: () => zone.classList.remove("over"),
      ondrop: async (event) => { event.preventDefault(); zone.classList.remove("over"); start(await dropped(event.dataTransfer)); },
    },
    h("strong", {}, t("drop")), h("br"), h("small", {}, t("drop_hint")),
    h(".row", {}, h("button.primary", { onclick: () => files.click() }, t("choose_files")), h("button", { onclick: () => folder.click() }, t("choose_folder")), sources > 0 && update, files, folder),
  );
  return zone;
}

/** All files of what was dropped, folders opened, with their paths. */
async function dropped(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file").map((item) => [item.webkitGetAsEntry(), item.getAsFile()]);
  const entries = items.map(([entry]) => entry).filter(Boolean);
  const files = items.filter(([entry]) => !entry).map(([, file]) => ({ file, path: file.name }));
  const walk = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((done, fail) => entry.file(done, fail));
      files.push({ file, path: entry.fullPath.replace(/^\//, "") });
      return;
    }
    const reader = entry.createReader();
    for (let batch = [null]; batch.length; ) {
      batch = await new Promise((done, fail) => reader.readEntries(done, fail));
      for (const inner of batch) await walk(inner);
    }
  };
  for (const entry of entries) await walk(entry);
  return files;
}

/** Upload files one by one, shown as they go, then index them; the run. */
async function uploaded(workspace, files, { bar, words }) {
  for (const [place, { file, path }] of files.entries()) {
    words.textContent = t("uploading", { n: place + 1, all: files.length });
    bar.value = place / files.length;
    await upload(workspace, file, path);
  }
  return startRun(workspace);
}

/** Show a run that `begin` begins from its first upload to its end, in a card that outlives the room. */
async function index(run, begin) {
  const shown = { bar: h("progress", { max: 1 }), words: h("p", {}, t("waiting")), cost: h("small", {}) };
  const stop = h("button", { disabled: true }, t("cancel"));
  run.card.hidden = false;
  run.card.className = "card";
  fill(run.card, h(".row", {}, h(".grow", {}, shown.words), stop), shown.bar, shown.cost);
  try {
    const started = await begin(shown);
    shown.bar.removeAttribute("value");
    shown.words.textContent = t("waiting");
    stop.disabled = false;
    stop.onclick = () => { stop.disabled = true; fill(stop, t("cancelling")); cancelRun(started.id); };
    await followRun(started, shown);
  } catch (error) {
    fill(run.card, h("p.bad", { role: "alert" }, error.message), h("p.quiet", {}, error.remedy));
    return;
  }
  stop.remove();
  await run.again();
}

async function followRun(started, { bar, words, cost }) {
  for await (const state of follow(started)) {
    if (state.state === "running") words.textContent = t(state.step ? `step_${state.step}` : "starting");
    if (state.total) [bar.max, bar.value] = [state.total, state.done];
    if (state.usage?.calls) cost.textContent = usage(state.usage);
    if (underWay(state)) continue;
    bar.remove();
    if (state.state === "completed") fill(words, done(state.report), state.error && h("p.bad", {}, `${state.error.message} ${state.error.remedy}`));
    else words.textContent = state.error ? `${state.error.message} ${state.error.remedy ?? ""}` : t("run_cancelled");
  }
}

const usage = (row) => t("usage_line", { calls: row.calls, cached: row.cached_calls ?? 0, tokens: number(row.input_tokens + row.output_tokens), cost: money(row.cost_usd), seconds: number(row.seconds, 1) });

function done(report) {
  return [
    h("strong.good", {}, t("run_done", { g: report.generation, ...report.documents })), h("br"), h("small", {}, usage(report.usage)),
    report.skipped.length > 0 && h("details", { open: report.skipped.length < 5 }, h("summary", {}, `${t("skipped")}: ${report.skipped.length}`), h("ul", {}, report.skipped.map((row) => h("li.break", {}, row.path.replace(/^.*\/uploads\//, ""), ": ", h("span.quiet", {}, row.reason))))),
  ];
}

// --- what failed ----------------------------------------------------------------------------------------------------

function failed(letters, workspace, again) {
  if (!letters.length) return null;
  const retry = async (event) => {
    event.target.disabled = true;
    const report = await retryLetters(workspace).finally(() => (event.target.disabled = false));
    notify(t("retried", { a: report.succeeded, b: report.tried }));
    await again();
  };
  const item = (row) => h("li", {}, h("strong.break", {}, row.document ?? row.item), h("span.quiet", {}, ` ${row.step}: `), row.error, h("br"), h("small", {}, row.remedy));
  return h("section.card", {}, h(".row", {}, h("h2.grow", {}, t("dead_letters")), h("button", { onclick: retry }, t("retry"))), listed(letters, item, 8));
}

// --- what is there --------------------------------------------------------------------------------------------------

function stored(rows, letters, workspace, again) {
  const failures = new Map(Map.groupBy(letters, (row) => row.document).entries().map(([name, group]) => [name, group.length]));
  const find = h("input", { type: "search", placeholder: t("find_document"), "aria-label": t("find_document") });
  const [body, rest] = [h("tbody"), h("div")];
  const chosen = new Set();
  const dated = rows.some((row) => row.date);
  const remove = h("button.danger", { hidden: true, onclick: () => forget(rows.filter((row) => chosen.has(row.id)), workspace, again) });
  const ask = h("button", { hidden: true, onclick: () => askOnly(workspace, [...chosen]) }, t("ask_these"));
  const choose = (id, on) => {
    on ? chosen.add(id) : chosen.delete(id);
    ask.hidden = remove.hidden = !chosen.size;
    fill(remove, t("remove_n", { n: number(chosen.size) }));
  };
  const show = (most) => {
    const words = find.value.trim().toLowerCase();
    const matching = rows.filter((row) => `${row.title} ${row.id}`.toLowerCase().includes(words));
    fill(body, matching.slice(0, most).map((row) => line(row, { workspace, again, failures, chosen, choose, dated })));
    fill(rest, matching.length > most && h("button.plain", { onclick: () => show(Infinity) }, t("more", { n: number(matching.length) })));
  };
  find.addEventListener("input", () => show(PAGE));
  show(PAGE);
  const head = h("thead", {}, h("tr", {}, h("th"), h("th", {}, t("title")), h("th.optional", {}, t("type")), dated && h("th.optional", {}, t("date")), h("th.number.optional", {}, t("size")), h("th.optional", {}, t("state")), h("th")));
  const heading = h("h2.grow", {}, t("documents"), " ", h("span.quiet", {}, number(rows.length)));
  return h("section", {}, h(".row", {}, heading, ask, remove, rows.length > 8 && find), rows.length ? h(".table", {}, h("table", {}, head, body)) : h("p.quiet", {}, t("no_documents")), rest);
}

/** The type of a document by its name: "PDF", "CSV"; nothing for a row without an extension. */
const typeOf = (name) => name.replace(/\.gz$/i, "").match(/\.([a-z]{2,8})$/i)?.[1].toUpperCase() ?? "";

function line(row, { workspace, again, failures, chosen, choose, dated }) {
  const failed_ = failures.get(row.id);
  const size = row.pages ? t("pages_n", { n: number(row.pages) }) : t("characters_n", { n: number(row.characters) });
  const box = h("input", { type: "checkbox", checked: chosen.has(row.id), "aria-label": `${t("choose")}: ${row.id}`, onchange: (event) => choose(row.id, event.target.checked) });
  return h(
    "tr", {}, h("td", {}, box), h("td.break", {}, h("button.link", { onclick: () => openDocument(workspace, row.id) }, row.title || row.id), h("br"), h("small", {}, row.id)),
    h("td.optional", {}, typeOf(row.id)), dated && h("td.optional", {}, row.date), h("td.number.optional", {}, size),
    h("td.optional", {}, failed_ ? h("span.warn", {}, t("failed_n", { n: number(failed_) })) : h("span.good", {}, t("indexed"))),
    h("td.end", {}, h("button.plain", { onclick: () => forget([row], workspace, again), "aria-label": `${t("remove")}: ${row.id}` }, t("remove"))),
  );
}

async function forget(rows, workspace, again) {
  const names = rows.map((row) => row.title || row.id);
  const title = rows.length === 1 ? t("forget_title", { d: names[0] }) : t("forget_many", { n: number(rows.length) });
  const list = rows.length > 1 && h("ul.break", {}, names.slice(0, 10).map((name) => h("li", {}, name)), names.length > 10 && h("li", {}, "…"));
  if (!(await confirmed(title, [list, h("p", {}, t("forget_body"))], { confirm: t("remove"), cancel: t("cancel") }, true))) return;
  for (const row of rows) await forgetDocument(workspace, row.id);
  notify(rows.length === 1 ? t("forgotten", { d: rows[0].id }) : t("forgotten_n", { n: number(rows.length) }));
  await again();
}

// --- what changed ---------------------------------------------------------------------------------------------------

function changes(numbers, workspace) {
  if (!numbers.length) return null;
  if (numbers.length < 2) return h("section", {}, h("h2", {}, t("changes")), h("p.quiet", {}, t("one_generation")));
  const select = (chosen, label) => h("select", { "aria-label": label }, numbers.map((row) => h("option", { value: row.number, selected: row.number === chosen }, `${row.number} · ${time(row.created)}`)));
  const [after, before] = numbers.map((row) => row.number).sort((a, b) => b - a);
  const [from, to] = [select(before, t("from")), select(after, t("to"))];
  const out = h(".diff", { "aria-live": "polite" });
  const compare = async () => fill(out, differences(await diff(workspace, from.value, to.value)));
  return h("section", {}, h("h2", {}, t("changes")), h(".row", {}, t("from"), from, t("to"), to, h("button", { onclick: compare }, t("compare"))), out);
}

function differences(found) {
  const parts = Object.entries(found).filter(([, part]) => part?.added && (part.added.length || part.removed.length || part.changed.length));
  if (!parts.length) return h("p.quiet", {}, t("same"));
  return parts.map(([kind, part]) => {
    const counts = ["added", "removed", "changed"].filter((name) => part[name].length).map((name) => t(name, { n: number(part[name].length) }));
    const rows = [["+", part.added], ["−", part.removed], ["~", part.changed]].flatMap(([sign, things]) => things.map((thing) => [sign, thing]));
    const item = ([sign, thing]) => h("li.break", { dataset: { sign } }, thing.label, (thing.fields ?? []).map((field) => h("small", {}, h("br"), `${field.field}: ${field.before} → ${field.after}`)));
    return h("details", { open: parts.length === 1 }, h("summary", {}, `${kind}: ${counts.join(", ")}`), listed(rows, item));
  });
}
