// The service's REST API, and its streams.
import { t } from "./words.js";

/** The address of a tab, and of a thing in it. */
export const place = (workspace, tab, ...rest) => `#/${[workspace, tab, ...rest].map(encodeURIComponent).join("/")}`;

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
const remove = async (path, parameters = {}) => (await request(`${path}${query(parameters)}`, { method: "DELETE" })).json();
const post = async (path, body = {}, method = "POST") => (await request(path, { method, ...json(body) })).json();

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

const PAGE = 1000;
const LOOK = 400; // ms between two looks at a run
const path = (name) => name.split("/").map(encodeURIComponent).join("/");

export async function* askStream(workspace, question, signal) {
  const response = await request("ask", { method: "POST", signal, ...json({ ...question, workspace, stream: true }) });
  for await (const event of events(response)) {
    if (event.event === "error") throw Object.assign(new Error(event.data.message), { remedy: event.data.remedy });
    yield event;
  }
}

export const workspaceNames = () => get("workspaces");
export const about = (workspace) => get("about", { workspace });
export const exampleQuestions = (workspace) => get("examples", { workspace });
export const conversationList = (workspace) => get("conversations", { workspace });
export const conversation = (workspace, id) => get(`conversations/${path(id)}`, { workspace });
export const renameConversation = (workspace, id, title) => post(`conversations/${path(id)}${query({ workspace })}`, { title }, "PATCH");
export const deleteConversation = (workspace, id) => remove(`conversations/${path(id)}`, { workspace });
export const deleteConversations = (workspace) => remove("conversations", { workspace });
export const keepFeedback = (workspace, body) => post(`feedback${query({ workspace })}`, body);
export const documentText = (workspace, name) => get(`documents/${path(name)}`, { workspace });
export const forgetDocument = (workspace, name) => remove(`documents/${path(name)}`, { workspace });
export const deadLetters = (workspace) => get("dead-letters", { workspace });
export const retryLetters = (workspace) => post(`dead-letters/retry${query({ workspace })}`);
export const generations = (workspace) => get("generations", { workspace });
export const diff = (workspace, before, after) => get("diff", { workspace, before, after });
export const runList = (workspace) => get("runs", { workspace });
export const askedQuestions = (workspace) => get("questions", { workspace });
export const usageRows = (workspace) => get("usage", { workspace });
export const doctor = (workspace) => get("doctor", { workspace });
export const findEntities = async (workspace, q) => (await get("entities", { workspace, q, limit: 12 })).entities;
export const entity = (workspace, name) => get("entity", { workspace, name });
export const picture = (workspace, name, other, most) => get("picture", { workspace, name, other, most });
export const paths = async (workspace, first, second) => (await get("paths", { workspace, first, second })).paths;
export const edits = (workspace) => get("edits", { workspace });
export const changeGraph = (workspace, body) => post(`edits${query({ workspace })}`, body);
export const undoEdit = (workspace, number) => remove(`edits/${number}`, { workspace });
export const reportList = (workspace) => get("reports", { workspace });
export const report = (workspace, name) => get(`reports/${path(name)}`, { workspace });
export const cancelRun = (run) => remove(`index-runs/${run}`);

export async function documentList(workspace) {
  const rows = [];
  for (let total = 1; rows.length < total; ) {
    const page = await get("documents", { workspace, limit: PAGE, offset: rows.length });
    rows.push(...page.documents);
    total = page.documents.length ? page.total : 0;
  }
  return rows;
}

export const upload = (workspace, file, name) => request(`documents/${path(name)}${query({ workspace, index: "false" })}`, { method: "PUT", body: file });
export const startRun = (workspace) => post(`index-runs${query({ workspace })}`);
export const indexRuns = () => get("index-runs");

/** Whether a run has not ended. */
export const underWay = (run) => run.state === "waiting" || run.state === "running";

/** How a run stands, again and again until it has ended. */
export async function* follow(run) {
  for (let now = run; ; now = await get(`index-runs/${run.id}`)) {
    yield now;
    if (!underWay(now)) return;
    await new Promise((done) => setTimeout(done, LOOK));
  }
}
