// The picture of a graph on a canvas, so that hundreds of entities move smoothly: drag, wheel, two fingers, keys.
import { fill, h, icon } from "./dom.js";
import { t } from "./words.js";

const HUES = [160, 28, 212, 335, 265, 88, 185, 5, 45, 300];
const LONGEST = 32; // characters of a name in the picture
const MARGIN = 46; // pixels around the picture
const REACH = 6; // pixels beside a node that still mean it
const FONT = "12px system-ui, sans-serif";
const LINE = 14; // pixels of a line of that
const dots = () => Math.min(devicePixelRatio, 2); // of the screen in a pixel of the page

/** The colour of a community by its number, grey for none. */
export const colour = (community) => (community < 0 ? "hsl(210 6% 60%)" : `hsl(${HUES[community % HUES.length]} 45% ${52 + 9 * (Math.floor(community / HUES.length) % 3)}%)`);
const shortened = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

/**
 * Draw entities and relations into a box. `chosen` are the ids of those that are marked with what is beside them, `walk` the
 * pairs of ids that a path joins, which is marked instead; `open(node)` is called for one that is clicked,
 * `address(node)` is where its link leads.
 */
export function draw(box, { nodes, edges }, { chosen, walk, open, address, legend }) {
  const canvas = h("canvas.map", { tabIndex: 0, role: "img", "aria-label": t("graph") });
  // What is drawn can be read and reached by keys as links.
  const links = nodes.map((node, rank) => h("a", { href: address(node), onfocus: () => look(rank), onblur: () => light(-1) }, node.name));
  const by = (factor) => () => zoom(factor, width / 2, height / 2);
  const button = (name, words, act) => h("button", { onclick: act, title: t(words), "aria-label": t(words) }, icon(name));
  const buttons = h(".zoom", {}, button("plus", "zoom_in", by(1.4)), button("minus", "zoom_out", by(1 / 1.4)), button("fit", "zoom_fit", () => move(0, 0, 1)));
  fill(box, canvas, h("ul.unseen", {}, links.map((link) => h("li", {}, link))), legend, buttons);

  const pen = canvas.getContext("2d");
  const rankOf = new Map(nodes.map((node, rank) => [node.id, rank]));
  const most = Math.max(...nodes.map((node) => node.degree), 1);
  const lines = edges.map((edge) => ({ a: rankOf.get(edge.source), b: rankOf.get(edge.target), weight: Math.min(0.5 + Math.log2(1 + edge.weight) / 4, 1), label: shortened(edge.label) }));
  const points = nodes.map((node) => ({ radius: 4 + 12 * Math.sqrt(node.degree / most), colour: colour(node.community), text: shortened(node.name) }));
  pen.font = FONT;
  for (const point of points) point.half = pen.measureText(point.text).width / 2 + 3;
  const middle = new Set(chosen.map((id) => rankOf.get(id)));
  const path = walk && new Set(walk.map((pair) => pair.map((id) => rankOf.get(id)).sort().join(" ")));
  let [width, height, x, y, scale] = [0, 0, 0, 0, 1];
  let [marked, over, waiting] = [marks(-1), -1, 0];
  let colours = {};

  /** The nodes and lines that stand out (null: all do alike), around the one that is pointed at. */
  function marks(pointed) {
    const around = pointed >= 0 ? new Set([pointed]) : path ? new Set() : middle;
    if (!around.size && !path) return null;
    const touches = !around.size ? (line) => path.has([line.a, line.b].sort().join(" ")) : (line) => around.has(line.a) || around.has(line.b);
    const some = lines.filter(touches);
    return { lines: new Set(some), nodes: new Set([...around, ...some.flatMap((line) => [line.a, line.b])]) };
  }

  function light(rank) {
    if (rank === over) return;
    over = rank;
    marked = marks(rank);
    canvas.title = rank < 0 ? "" : `${nodes[rank].name} (${nodes[rank].kind})`;
    canvas.style.cursor = rank < 0 ? "" : "pointer";
    paint();
  }

  function look(rank) {
    const { at } = points[rank];
    const [left, top] = [at.x * scale + x, at.y * scale + y];
    if (left < 0 || top < 0 || left > width || top > height) move(width / 2 - at.x * scale, height / 2 - at.y * scale, scale);
    light(rank);
  }

  function move(toX, toY, toScale) {
    [x, y, scale] = [toX, toY, toScale];
    paint();
  }

  function zoom(factor, centreX, centreY) {
    const next = Math.min(Math.max(scale * factor, 0.4), 12);
    move(centreX - ((centreX - x) * next) / scale, centreY - ((centreY - y) * next) / scale, next);
  }

  function paint() {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      if (canvas.isConnected) render();
    });
  }

  function render() {
    pen.setTransform(dots(), 0, 0, dots(), 0, 0);
    pen.clearRect(0, 0, width, height);
    const grow = Math.sqrt(scale);
    const seen = points.map(({ at, radius }) => ({ x: at.x * scale + x, y: at.y * scale + y, radius: radius * grow }));
    strokes(lines.filter((line) => !marked?.lines.has(line)), seen, colours.quiet, marked ? 0.13 : 0.45);
    if (marked) strokes(lines.filter((line) => marked.lines.has(line)), seen, colours.accent, 1, 1.5);
    pen.lineWidth = 1.5;
    for (const front of marked ? [false, true] : [true]) {
      points.forEach((point, rank) => {
        if (marked && marked.nodes.has(rank) !== front) return;
        const { x: left, y: top, radius } = seen[rank];
        if (left < -radius || top < -radius || left > width + radius || top > height + radius) return;
        pen.globalAlpha = front ? 1 : 0.22;
        pen.beginPath();
        pen.arc(left, top, radius, 0, 2 * Math.PI);
        pen.fillStyle = point.colour;
        pen.fill();
        pen.strokeStyle = middle.has(rank) || rank === over ? colours.text : colours.page;
        pen.stroke();
      });
    }
    names(seen);
    if (marked) relations([...marked.lines], seen);
    pen.globalAlpha = 1;
  }

  /** Lines of one pixel each, which browsers draw ten times as fast as wider ones: a heavier relation is a darker one. */
  function strokes(some, seen, style, alpha, wide = 1 / dots()) {
    pen.strokeStyle = style;
    pen.lineWidth = wide;
    for (const { a, b, weight } of some) {
      pen.globalAlpha = alpha * weight;
      pen.beginPath();
      pen.moveTo(seen[a].x, seen[a].y);
      pen.lineTo(seen[b].x, seen[b].y);
      pen.stroke();
    }
  }

  /** What the marked lines say, at their middle, where a line is long enough for it. */
  function relations(some, seen) {
    pen.globalAlpha = 1;
    pen.fillStyle = colours.accent;
    for (const { a, b, label } of some) {
      const [from, to] = [seen[a], seen[b]];
      if (Math.hypot(from.x - to.x, from.y - to.y) < pen.measureText(label).width + from.radius + to.radius) continue;
      const [left, top] = [(from.x + to.x) / 2, (from.y + to.y) / 2 + 4];
      pen.strokeText(label, left, top);
      pen.fillText(label, left, top);
    }
  }

  /** The names that fit beside each other: of what stands out first, then of the more connected. */
  function names(seen) {
    const taken = new Map(); // boxes by cells of 64 pixels
    const cells = ({ left, right, top, bottom }, act) => {
      for (let column = left >> 6; column <= right >> 6; column += 1) for (let row = top >> 6; row <= bottom >> 6; row += 1) if (act(column * 4096 + row)) return true;
      return false;
    };
    const put = (box_) => cells(box_, (cell) => { taken.has(cell) ? taken.get(cell).push(box_) : taken.set(cell, [box_]); });
    const hits = (box_) => cells(box_, (cell) => taken.get(cell)?.some((other) => box_.right > other.left && box_.left < other.right && box_.bottom > other.top && box_.top < other.bottom));
    const inside = points.map((_, rank) => rank).filter((rank) => seen[rank].x > -80 && seen[rank].x < width + 80 && seen[rank].y > -20 && seen[rank].y < height + 40);
    for (const rank of inside) {
      const { x: left, y: top, radius } = seen[rank];
      if (!marked || marked.nodes.has(rank)) put({ left: left - radius, right: left + radius, top: top - radius + 2, bottom: top + radius });
    }
    const order = (rank) => (rank === over || middle.has(rank) ? 0 : marked?.nodes.has(rank) ? 1 : 2);
    pen.font = FONT;
    pen.textAlign = "center";
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    pen.strokeStyle = colours.page;
    pen.fillStyle = colours.text;
    for (const rank of inside.sort((a, b) => order(a) - order(b) || a - b)) {
      const { half, text } = points[rank];
      const bottom = seen[rank].y - seen[rank].radius - 3;
      const centre = Math.min(Math.max(seen[rank].x, half), Math.max(width - half, half));
      const box_ = { left: centre - half, right: centre + half, top: bottom - LINE, bottom };
      if (order(rank) > 0 && hits(box_)) continue;
      put(box_);
      pen.globalAlpha = marked && !marked.nodes.has(rank) ? 0.6 : 1;
      pen.strokeText(text, centre, bottom - 2);
      pen.fillText(text, centre, bottom - 2);
    }
  }

  const style = () => {
    const { color, backgroundColor, fill: quiet, stroke } = getComputedStyle(canvas); // by the style sheet, light or dark
    colours = { text: color, page: backgroundColor, quiet, accent: stroke };
    paint();
  };
  const fit = () => {
    ({ width, height } = box.getBoundingClientRect());
    [canvas.width, canvas.height] = [width * dots(), height * dots()];
    const [wide, high] = [Math.max(width - 2 * MARGIN, 1), Math.max(height - 2 * MARGIN, 1)];
    points.forEach((point, rank) => (point.at = { x: MARGIN + nodes[rank].x * wide, y: MARGIN + nodes[rank].y * high }));
    style();
  };
  listen(canvas, { at: (left, top) => nearest(left, top), light, open: (rank) => open(nodes[rank]), drag: (dx, dy) => move(x + dx, y + dy, scale), zoom });

  function nearest(left, top) {
    let [best, rank] = [Infinity, -1];
    points.forEach(({ at, radius }, place) => {
      const away = Math.hypot(at.x * scale + x - left, at.y * scale + y - top) - radius * Math.sqrt(scale);
      if (away < REACH && away < best) [best, rank] = [away, place];
    });
    return rank;
  }

  fit();
  const sizes = new ResizeObserver(() => (canvas.isConnected ? fit() : end()));
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const theme = new MutationObserver(style);
  const end = () => { sizes.disconnect(); theme.disconnect(); scheme.removeEventListener("change", style); };
  sizes.observe(box);
  theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  scheme.addEventListener("change", style);
}

/** What is done to a picture with mouse, fingers and keys. */
function listen(canvas, { at, light, open, drag, zoom }) {
  const fingers = new Map();
  let dragged = 0; // pixels since the button went down: a click that moved is none
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (!fingers.size) dragged = 0;
    fingers.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return light(at(event.offsetX, event.offsetY));
    const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    dragged += Math.hypot(dx, dy);
    if (other) {
      const apart = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY) || 1;
      zoom(apart(event) / apart(before), (event.offsetX + other.offsetX) / 2, (event.offsetY + other.offsetY) / 2);
    } else drag(dx, dy);
    fingers.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => light(-1));
  canvas.addEventListener("click", (event) => {
    const rank = at(event.offsetX, event.offsetY);
    if (rank >= 0 && dragged < 5) open(rank);
  });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const factor = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 }[event.key];
    if (factor) zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
    else if (moves[event.key]) drag(...moves[event.key]);
    else return;
    event.preventDefault();
  });
}
