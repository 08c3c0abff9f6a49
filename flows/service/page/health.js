// Runs and their cost; and whether everything works.
import { about, askedQuestions, doctor, runList, usageRows } from "./api.js";
import { fill, h } from "./dom.js";
import { money, number, t, time } from "./words.js";

export async function runs(main, workspace) {
  const { generation, prefect } = await about(workspace);
  const [rows, used, asked] = await Promise.all([runList(workspace), generation ? usageRows(workspace) : [], questionsFor(workspace)]);
  const link = prefect && h("p", {}, h("a", { href: prefect, target: "_blank", rel: "noopener" }, t("prefect")));
  fill(main, h(".sheet", {}, h("h1", {}, t("runs")), link, taken(used), history(rows), asked && questions(asked)));
}

/** The questions of all users; null for who may not see them. */
const questionsFor = (workspace) =>
  askedQuestions(workspace).catch((error) => {
    if (error.status === 403) return null;
    throw error;
  });

function questions(rows) {
  const state = (row) => (row.error ? h("span.bad", {}, row.error) : h(`span.${{ none: "good", partial: "warn", ungrounded: "bad" }[row.label] ?? "quiet"}`, {}, t(`label_${row.label}`)));
  const line = (row) => [time(row.asked), row.mode, row.question, state(row), number(row.seconds, 1), number(row.calls), number(row.tokens), money(row.cost_usd)];
  const found = rows.length ? table(["started", "mode", "question", "state", "seconds", "calls", "tokens", "cost"], rows.map(line), 4) : h("p.quiet", {}, t("no_questions"));
  return h("section", {}, h("h2", {}, t("questions")), found);
}

/** What models did for what is indexed now. */
function taken(rows) {
  if (!rows.length) return null;
  const sum = (name) => rows.reduce((all, row) => all + (row[name] ?? 0), 0);
  const figure = (words, value) => h("div", {}, h("strong", {}, value), h("span.quiet", {}, t(words)));
  const cost = rows.some((row) => row.cost_usd === null) ? null : sum("cost_usd");
  const figures = h(".figures", {}, figure("calls", number(sum("calls"))), figure("tokens", number(sum("input_tokens") + sum("output_tokens"))), figure("cost", money(cost)), figure("seconds", number(sum("seconds"), 1)));
  const line = (row) => [row.step, row.model, number(row.calls), number(row.input_tokens + row.output_tokens), money(row.cost_usd), number(row.seconds, 1)];
  return h("section", {}, h("h2", {}, t("taken")), figures, h("details", {}, h("summary", {}, t("details")), table(["step", "model", "calls", "tokens", "cost", "seconds"], rows.map(line), 2)));
}

/** A table; its columns from `numbers` on are figures. */
function table(heads, lines, numbers) {
  const kind = (tag, place) => (place >= numbers ? `${tag}.number` : place < 3 && heads[place] !== "question" ? `${tag}.brief` : tag);
  const row = (tag, cells) => h("tr", {}, cells.map((cell, place) => h(kind(tag, place), {}, cell)));
  return h(".table", {}, h("table", {}, h("thead", {}, row("th", heads.map((name) => t(name)))), h("tbody", {}, lines.map((line) => row("td", line)))));
}

function history(rows) {
  if (!rows.length) return h("p.quiet", {}, t("no_runs"));
  const states = { completed: "good", failed: "bad", stopped: "warn" };
  const line = (row) => {
    const { usage = [], error, ...done } = JSON.parse(row.summary);
    const calls = usage.reduce((all, step) => all + step.calls, 0);
    const about_ = error ? h("span.bad", {}, error) : inWords(done);
    const shown = h("details", {}, h("summary", {}, `${done.generation ? `${t("generation")} ${done.generation}` : t("details")}`), h(".break", {}, about_), usage.map((step) => h("div.quiet", {}, `${step.step}: ${step.model}, ${number(step.calls)}`)));
    return [t(`kind_${row.kind}`), time(row.started), h(`span.${states[row.state] ?? "quiet"}`, {}, t(`state_${row.state}`)), shown, number(done.seconds, 1), number(calls)];
  };
  return h("section", {}, h("h2", {}, t("history")), table(["kind", "started", "state", "details", "seconds", "calls"], rows.map(line), 4));
}

const inWords = (done) =>
  Object.entries({ ...done, ...done.documents }).filter(([name, value]) => value && typeof value !== "object" && name !== "seconds").map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`).join(", ");

export async function health(main, workspace) {
  fill(main, h(".sheet", {}, h("h1", {}, t("health")), h("p.quiet", {}, t("checking"))));
  const report = await doctor(workspace);
  const check = (title, ok, seen, ...more) => h("li", {}, h(ok ? "span.good" : "span.bad", { "aria-label": ok ? "ok" : "!" }, ok ? "✓" : "✗"), h(".break", {}, h("strong", {}, title), seen, more.filter(Boolean).map((line) => h("p", {}, line))));
  const models = report.offline
    ? [check(t("models"), true, t("offline"))]
    : report.models.map((row) => check(`${t("models")}: ${row.role}`, row.ok, `${row.model} ${row.address ?? ""} (${number(row.seconds, 2)} s)`, row.problem, ...(row.advice ?? [])));
  const rows = [["embedding", report.embedding], ["reranker", report.reranker], ["workspace", report.workspace], ["prefect_server", report.prefect]];
  const others = rows.filter(([, row]) => row).map(([words, row]) => check(t(words), row.ok, row.seen, row.problem, row.advice));
  const words = h(report.ok ? "p.good" : "p.bad", {}, t(report.ok ? "all_good" : "not_good"));
  fill(main, h(".sheet", {}, h(".row", {}, h("h1.grow", {}, t("health")), h("button", { onclick: () => health(main, workspace) }, t("check_again"))), words, h("ul.plain.checks", {}, models, others)));
}
