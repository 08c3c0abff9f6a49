// The service's REST API, and its streams.
import { t } from "./words.js";

/** The address of a tab, and of a thing in it. */
export const place = (workspace, tab, ...rest) => `#/${[workspace, tab, ...rest].map(encodeURIComponent).join("/")}`;

const at = (workspace, ...rest) => ["workspaces", workspace, ...rest].map(encodeURIComponent).join("/");
let key = sessionStorage.getItem("trellis-key");
let askForKey = async () => null;
let asking = null;

/** Who is asked for a key where the service wants one. */
export function onKey(ask) {
  askForKey = ask;
}

async function request(path, options = {}) {
  const headers = { ...options.headers, ...(key && { Authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(`/api/v1/${path}`, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(t("unreachable"));
  }
  if (response.status === 401) {
    asking ??= askForKey().finally(() => (asking = null)); // many requests, one question
    key = await asking;
    if (key) {
      sessionStorage.setItem("trellis-key", key);
      return request(path, options);
    }
  }
  if (!response.ok) throw await failure(response);
  return response;
}

/** An error as the service tells it: its message, and what to do. */
async function failure(response) {
  const body = await response.json().catch(() => ({}));
  const told = body.error ?? {};
  return Object.assign(new Error(told.message ?? `${response.status} ${response.statusText}`), { remedy: told.remedy ?? "", status: response.status });
}

const json = (body) => ({ headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
export const get = async (path, parameters = {}) => (await request(`${path}${query(parameters)}`)).json();
const post = async (path, body = {}) => (await request(path, { method: "POST", ...json(body) })).json();

function query(parameters) {
  const rows = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return rows.length ? `?${new URLSearchParams(rows)}` : "";
}

/** The events of a stream (text/event-stream): {event, data}. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += part.value.replaceAll("\r\n", "\n");
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const lines = text.slice(0, end).split("\n");
        text = text.slice(end + 2);
        const of = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""));
        const data = of("data").join("\n");
        if (data) yield { event: of("event")[0] ?? "message", data: JSON.parse(data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// --- what the rooms ask for -----------------------------------------------------------------------------------------

export async function* askStream(workspace, body, signal) {
  const response = await request(at(workspace, "ask"), { method: "POST", signal, headers: { "Content-Type": "application/json", Accept: "text/event-stream" }, body: JSON.stringify({ ...body, stream: true }) });
  for await (const event of events(response)) {
    if (event.event === "error") throw Object.assign(new Error(event.data.message), { remedy: event.data.remedy });
    yield event;
  }
}

export const workspaceNames = async () => get("workspaces");
export const overview = (workspace) => get(at(workspace, "overview"));
export const keepFeedback = (workspace, body) => post(at(workspace, "feedback"), body);
export const documentText = (workspace, name) => get(at(workspace, "source"), { document: name });
export const documentList = (workspace) => get(at(workspace, "documents"));
export const forgetDocument = (workspace, name) => post(at(workspace, "forget"), { documents: [name] });
export const deadLetters = (workspace) => get(at(workspace, "dead-letters"));
export const retryLetters = (workspace) => post(at(workspace, "retry"));
export const generations = (workspace) => get(at(workspace, "generations"));
export const diff = (workspace, before, after) => get(at(workspace, "diff"), { before, after });
export const cancelRun = (workspace, run) => post(at(workspace, "runs", run, "cancel"));
export const runList = (workspace) => get(at(workspace, "runs"));
export const usageTotals = (workspace) => get(at(workspace, "usage"));
export const doctor = (workspace) => get(at(workspace, "doctor"));
export const findEntities = (workspace, text) => get(at(workspace, "entities"), { text, limit: 12 });
export const entity = (workspace, name) => get(at(workspace, "entity"), { name });
export const picture = (workspace, name) => get(at(workspace, "picture"), { name });
export const paths = (workspace, start, end) => get(at(workspace, "paths"), { start, end });
export const edits = (workspace) => get(at(workspace, "edits"));
export const changeGraph = (workspace, body) => post(at(workspace, "edits"), body);
export const undoEdit = (workspace, number) => post(at(workspace, "edits", number, "undo"));
export const reportList = (workspace) => get(at(workspace, "reports"));
export const report = (workspace, name) => get(at(workspace, "reports", name));

/** Upload files one by one, then index them; the number of the run. */
export async function upload(workspace, files, progress) {
  for (const [index, { file, path }] of files.entries()) {
    await request(`${at(workspace, "files")}${query({ path })}`, { method: "PUT", body: file });
    progress(index + 1);
  }
  return (await post(at(workspace, "runs"))).id;
}

/** How a run stands, until it has ended. */
export async function* runEvents(workspace, run) {
  for await (const { data } of events(await request(at(workspace, "runs", run, "events")))) yield data;
}
