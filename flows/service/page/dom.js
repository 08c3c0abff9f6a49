// Elements from names, properties and children. Text only ever becomes text: nothing here makes HTML of a string.

/** h("button.primary", {onclick, title}, "Save"): children are elements, texts, lists of them, or nothing. */
export function h(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key in element && !key.startsWith("aria") && key !== "list" && key !== "role") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...flat(children));
  return element;
}

const flat = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== "");

/** Put children in place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for a drawing. */
export function s(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...flat(children));
  return element;
}

const ICONS = {
  up: "M7 11v9H4v-9zM7 11l4-8c2 0 3 1 2.500 3l-.8 3H19c1.500 0 2 1 1.800 2l-1.600 7c-.2 1-1 2-2 2H7",
  down: "M17 13V4h3v9zM17 13l-4 8c-2 0-3-1-2.500-3l.8-3H5c-1.500 0-2-1-1.800-2l1.600-7c.2-1 1-2 2-2H17",
  close: "M5 5l14 14M19 5L5 19",
  send: "M12 20V4M5 11l7-7 7 7",
  stop: "M7 7h10v10H7z",
  theme: "M12 3a9 9 0 1 0 9 9c-5 3-11-3-9-9z",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  pen: "M4 20l1-4L16 5l3 3L8 19z",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
};

/** A line icon. */
export function icon(name) {
  const path = s("path", { d: ICONS[name] });
  return s("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, path);
}

/** A short message at the foot of the page; an error stays until it is closed. */
export function notify(text, { error = false, remedy = "" } = {}) {
  const box = document.getElementById("notice");
  const close = h("button.plain", { onclick: () => note.remove(), "aria-label": "×" }, icon("close"));
  const note = h(error ? "p.note.error" : "p.note", {}, h("span", {}, text, remedy && h("small", {}, remedy)), close);
  box.append(note);
  if (!error) setTimeout(() => note.remove(), 5000);
}

/** Ask in a dialog; true, or the fields' values, once it is confirmed. */
export function confirmed(title, body, action, dangerous = false) {
  return new Promise((resolve) => {
    const form = h(
      "form", { method: "dialog" }, h("h2", {}, title), body,
      h("menu", {}, h("button.plain", { type: "button", onclick: () => dialog.close("") }, action.cancel),
        h(dangerous ? "button.danger" : "button.primary", { value: "yes" }, action.confirm)),
    );
    const dialog = h("dialog", { onclose: () => {
      resolve(dialog.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
      dialog.remove();
    } }, form);
    document.body.append(dialog);
    dialog.showModal();
  });
}
