// The page: a bar, and one room for each tab. The address after # is #/WORKSPACE/TAB/WHAT.
import { onKey, place, workspaceNames } from "./api.js";
import { ask } from "./ask.js";
import { documents } from "./documents.js";
import { confirmed, fill, h, icon, notify } from "./dom.js";
import { graph } from "./graph.js";
import { health, runs } from "./health.js";
import { reports } from "./reports.js";
import { closeSource } from "./source.js";
import { switchLanguage, t } from "./words.js";

const ROOMS = { ask, documents, graph, reports, runs, health };
const main = document.getElementById("main");
let workspaces = [];
let shown = "";
let room = null; // the element of the room that is open: what comes late for another fills nothing that is seen


function here() {
  const [workspace, tab, ...rest] = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
  const known = workspaces.includes(workspace) ? workspace : workspaces[0];
  return { workspace: known, tab: Object.hasOwn(ROOMS, tab ?? "") ? tab : "ask", rest };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody typed a lone %
  }
}

function bar({ workspace, tab }) {
  const brand = h("a.brand", { href: place(workspace, "ask") }, h("img", { src: "icon.svg", alt: "" }), "Trellis");
  const links = Object.keys(ROOMS).map((name) =>
    h("a", { href: place(workspace, name), "aria-current": name === tab ? "page" : null }, t(name)),
  );
  const choose = h(
    "select", { "aria-label": t("workspace"), title: t("workspace"), onchange: (event) => (location.hash = place(event.target.value, tab)) },
    workspaces.map((name) => h("option", { selected: name === workspace }, name)),
  );
  const words = h("button.plain", { onclick: () => { switchLanguage(); shown = ""; show(); } }, t("language"));
  const theme = h("button.plain", { title: t("theme"), "aria-label": t("theme"), onclick: switchTheme }, icon("theme"));
  fill(document.getElementById("bar"), brand, h("nav", { "aria-label": "Trellis" }, links), h(".tools", {}, workspaces.length > 1 && choose, words, theme));
  document.querySelector("#bar [aria-current]").scrollIntoView({ inline: "center", block: "nearest" });
  document.getElementById("skip").textContent = t("skip");
}

async function show() {
  const at = here();
  const wanted = JSON.stringify([at.workspace, at.tab]);
  document.title = `${t(at.tab)} · Trellis`;
  bar(at);
  if (wanted !== shown) {
    shown = wanted;
    closeSource();
    room = h(".room", {}, h("p.empty", {}, t("loading")));
    fill(main, room);
    main.scrollTop = 0;
  }
  const own = room;
  try {
    await ROOMS[at.tab](own, at.workspace, at.rest);
  } catch (error) {
    fill(own, h(".sheet", {}, h(".card", { role: "alert" }, h("h2", {}, t("failed")), h("p", {}, error.message), h("p.quiet", {}, error.remedy))));
  }
}

function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("trellis-theme", name);
}

onKey(async () => {
  const field = h("input", { name: "key", type: "password", required: true, autocomplete: "off", "aria-label": t("key") });
  const values = await confirmed(t("key"), [field, h("p.quiet", {}, t("key_hint"))], { confirm: t("enter"), cancel: t("cancel") });
  return values?.key ?? null;
});
if (localStorage.getItem("trellis-theme")) setTheme(localStorage.getItem("trellis-theme"));
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) closeSource();
});
addEventListener("unhandledrejection", ({ reason }) => notify(reason?.message ?? String(reason), { error: true, remedy: reason?.remedy }));
try {
  workspaces = await workspaceNames();
  await show();
} catch (error) {
  fill(main, h(".sheet", {}, h(".card", { role: "alert" }, h("p", {}, error.message), h("p.quiet", {}, error.remedy))));
}
