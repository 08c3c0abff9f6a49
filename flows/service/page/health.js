// Runs and their cost; and whether everything works.
import { doctor, overview, runList, usageTotals } from "./api.js";
import { fill, h } from "./dom.js";
import { money, number, t, time } from "./words.js";

export async function runs(main, workspace) {
  const [rows, totals, about] = await Promise.all([runList(workspace), usageTotals(workspace), overview(workspace)]);
  const link = about.prefect && h("p", {}, h("a", { href: about.prefect, target: "_blank", rel: "noopener" }, t("prefect")));
  fill(main, h(".sheet", {}, h("h1", {}, t("runs")), link, figures(totals), history(rows)));
}

function figures(totals) {
  if (!totals.length) return null;
  const sum = (name) => totals.reduce((all, row) => all + (row[name] ?? 0), 0);
  const figure = (words, value) => h("div", {}, h("strong", {}, value), h("span.quiet", {}, t(words)));
  const cell = (row) => h("tr", {}, h("td", {}, row.step), h("td.break", {}, row.model), h("td.number", {}, number(row.calls)), h("td.number", {}, number(row.output_tokens)), h("td.number", {}, number(row.seconds, 1)));
  const heads = ["step", "model", "calls", "tokens", "seconds"].map((name, place) => h(place > 1 ? "th.number" : "th", {}, t(name)));
  return h("section", {}, h("h2", {}, t("totals")), h(".figures", {}, figure("calls", number(sum("calls"))), figure("tokens", number(sum("output_tokens"))), figure("seconds", number(sum("seconds"), 1))), h("details", {}, h("summary", {}, t("details")), h(".table", {}, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, totals.map(cell))))));
}

function history(rows) {
  if (!rows.length) return h("p.quiet", {}, t("no_runs"));
  const states = { completed: "good", failed: "bad", stopped: "warn" };
  const line = (row) => h(
    "tr", {}, h("td", {}, row.kind), h("td", {}, time(row.started)), h("td", {}, h(`span.${states[row.state] ?? "quiet"}`, {}, row.state)),
    h("td.number", {}, number(row.seconds, 1)), h("td.number.optional", {}, number(row.calls)), h("td.number.optional", {}, row.cost_usd ? money(row.cost_usd) : ""),
    h("td.break.quiet.optional", {}, row.error ? h("span.bad", {}, row.error) : row.words),
  );
  const heads = [["kind"], ["started"], ["state"], ["seconds", "number"], ["calls", "number.optional"], ["cost", "number.optional"], ["details", "optional"]];
  return h("section", {}, h("h2", {}, t("history")), h(".table", {}, h("table", {}, h("thead", {}, h("tr", {}, heads.map(([name, kind]) => h(kind ? `th.${kind}` : "th", {}, t(name))))), h("tbody", {}, rows.map(line)))));
}

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
