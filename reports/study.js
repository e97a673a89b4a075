// All runs of a study: parallel coordinates on a canvas, a table that draws only the rows in sight,
// one filter for both, and the scenario file and command of the chosen run. The root element says
// how many runs are left (data-kept) and which is chosen (data-chosen).
"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("study-data").textContent);
  const { columns, points, holds } = data;
  const count = points.length, best = new Set(data.best);
  const factors = columns.filter((one) => one.kind === "factor");
  const metrics = columns.filter((one) => one.kind === "metric");
  const SI = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

  function text(column, value) {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return String(value);
    if (column.kind === "factor" && (Math.abs(value) < 1e6 || /^[^/B]/.test(column.unit))) return `${+value.toPrecision(6)} ${column.unit}`.trim();
    if (column.unit === "1") return `${+(100 * value).toPrecision(3)}%`;
    if (column.unit === "ns") {
      const [scale, unit] = value >= 1e6 ? [1e6, "ms"] : value >= 1e3 ? [1e3, "µs"] : [1, "ns"];
      return `${+(value / scale).toPrecision(4)} ${unit}`;
    }
    const [scale, prefix] = SI.find(([least]) => Math.abs(value) >= least) || [1, ""];
    return `${+(value / scale).toPrecision(4)} ${prefix}${column.unit}`.trim();
  }

  const ranges = new Map();
  const CONDITION = /^([^\s<>=!]+)\s*(<=|>=|!=|<|>|=)\s*(\S+)$/;
  let conditions = [];

  function columnOf(name) {
    return columns.find((one) => one.name === name) ||
      columns.find((one) => one.name.endsWith(name) || one.short === name);
  }

  function parsed(words) {
    const found = [];
    for (const word of words.replace(/\s*(<=|>=|!=|<|>|=)\s*/g, "$1").split(/\s+/).filter(Boolean)) {
      const match = CONDITION.exec(word), column = match && columnOf(match[1]);
      if (!column) {
        const small = word.toLowerCase();
        found.push((k) => columns.some((one) => !one.numeric &&
          String(one.values[k] ?? "").toLowerCase().includes(small)));
        continue;
      }
      const bound = column.numeric ? Number(match[3]) : match[3];
      const sign = match[2];
      found.push((k) => {
        const value = column.values[k];
        if (value === null || value === undefined) return false;
        if (sign === "<") return value < bound;
        if (sign === "<=") return value <= bound;
        if (sign === ">") return value > bound;
        if (sign === ">=") return value >= bound;
        return (sign === "=") === (value === bound);
      });
    }
    return found;
  }

  let order = Array.from(points.keys()), kept = order, sorted = null, falling = false, chosen = null;

  function keep() {
    kept = order.filter((k) => conditions.every((holdsFor) => holdsFor(k)) &&
      [...ranges].every(([axis, [low, high]]) => {
        const at = axis.position(k);
        return at !== null && at >= low && at <= high;
      }));
    root.dataset.kept = String(kept.length);
    document.getElementById("count").textContent = `${kept.length} of ${count} runs`;
    place();
    drawAxes();
  }

  const AXES_MAX = 12, TOP = 54, BOTTOM = 26, SIDE = 80, APART_MIN = 96; // room for their labels
  const canvas = document.getElementById("axes"), pen = canvas.getContext("2d");
  let width = 0, height = 0;

  function axisOf(column) {
    const present = column.values.filter((value) => value !== null && value !== undefined);
    if (!column.numeric) {
      const names = [...new Set(present)];
      if (names.length > 24) return null;
      const place = new Map(names.map((name, at) => [name, names.length > 1 ? at / (names.length - 1) : 0.5]));
      return { column, position: (k) => place.get(column.values[k]) ?? null, ends: names.length > 1 ? [names[0], names.at(-1)] : names };
    }
    let low = Infinity, high = -Infinity;
    for (const value of present) { low = Math.min(low, value); high = Math.max(high, value); }
    const log = low > 0 && high / low > 100, scaled = log ? Math.log : (x) => x;
    const span = scaled(high) - scaled(low);
    const position = (k) => {
      const value = column.values[k];
      return value === null || value === undefined ? null : span ? (scaled(value) - scaled(low)) / span : 0.5;
    };
    return { column, position, ends: [text(column, low), text(column, high)] };
  }

  const main = metrics.filter((one) => one.numeric && new Set(one.values).size > 1);
  const axes = [...factors, ...main].map(axisOf).filter(Boolean).slice(0, AXES_MAX);
  canvas.style.minWidth = `${2 * SIDE + APART_MIN * (axes.length - 1)}px`;
  const colouring = axes.find((axis) => axis.column.name === data.colour);

  const x = (at) => SIDE + at * (width - 2 * SIDE) / Math.max(axes.length - 1, 1);
  const y = (part) => height - BOTTOM - part * (height - TOP - BOTTOM);

  function stroke(k) {
    pen.beginPath();
    let begun = false;
    for (let at = 0; at < axes.length; at += 1) {
      const part = axes[at].position(k);
      if (part === null) { begun = false; continue; }
      if (begun) pen.lineTo(x(at), y(part)); else pen.moveTo(x(at), y(part));
      begun = true;
    }
    pen.stroke();
  }

  function drawAxes() {
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1;
    width = canvas.clientWidth; height = canvas.clientHeight;
    canvas.width = width * ratio; canvas.height = height * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.lineWidth = 1;
    const alpha = Math.min(0.6, Math.max(0.04, 60 / Math.max(kept.length, 1)));
    for (const k of kept) {
      const part = colouring ? colouring.position(k) ?? 0 : 0.5;
      pen.strokeStyle = `hsla(${250 - 215 * part},75%,42%,${holds[k] ? alpha : alpha / 2})`;
      stroke(k);
    }
    if (chosen !== null) {
      pen.strokeStyle = "#d55e00"; pen.lineWidth = 2.5;
      stroke(chosen);
    }
    pen.lineWidth = 1; pen.textAlign = "center";
    axes.forEach((axis, at) => {
      pen.strokeStyle = "#8a97a3";
      pen.beginPath(); pen.moveTo(x(at), y(0)); pen.lineTo(x(at), y(1)); pen.stroke();
      const range = ranges.get(axis);
      if (range) {
        pen.fillStyle = "rgba(230,159,0,0.45)";
        pen.fillRect(x(at) - 6, y(range[1]), 12, Math.max(y(range[0]) - y(range[1]), 2));
      }
      pen.fillStyle = "#1b2733"; pen.font = "12px system-ui, sans-serif";
      pen.fillText(end(axis.column.short), x(at), at % 2 ? 14 : 28);
      pen.fillStyle = "#5b6875"; pen.font = "11px system-ui, sans-serif";
      pen.fillText(short(axis.ends.at(-1)), x(at), TOP - 5);
      pen.fillText(short(axis.ends[0]), x(at), height - 8);
    });
    root.dataset.axesMs = (performance.now() - began).toFixed(1);
  }

  const end = (name) => name.length > 22 ? `…${name.slice(-21)}` : name; // paths differ there
  const short = (name) => name.length > 15 ? `${name.slice(0, 14)}…` : name;

  let drag = null;
  const partAt = (event) => Math.min(1, Math.max(0,
    (height - BOTTOM - event.offsetY) / (height - TOP - BOTTOM)));
  canvas.addEventListener("pointerdown", (event) => {
    const at = axes.reduce((near, _, k) =>
      Math.abs(x(k) - event.offsetX) < Math.abs(x(near) - event.offsetX) ? k : near, 0);
    if (!axes.length || Math.abs(x(at) - event.offsetX) > 24) return;
    drag = { axis: axes[at], from: partAt(event) };
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const to = partAt(event), low = Math.min(drag.from, to), high = Math.max(drag.from, to);
    if (high - low < 0.015) ranges.delete(drag.axis); else ranges.set(drag.axis, [low, high]);
    drag = null;
    keep();
  });

  const ROW_PX = 28, MARGIN = 8;
  const holder = document.getElementById("rows"), space = document.getElementById("space");
  const table = document.getElementById("table"), body = table.tBodies[0];
  const shownColumns = [{ name: "point", short: "point", kind: "factor", numeric: true, unit: "", values: points }, ...columns];
  const head = table.tHead.rows[0];
  for (const column of shownColumns) {
    const cell = document.createElement("th");
    cell.textContent = column.short; cell.title = column.name; cell.scope = "col";
    if (column.numeric) cell.className = "number";
    cell.addEventListener("click", () => sortBy(column, cell));
    head.append(cell);
  }

  function sortBy(column, cell) {
    falling = sorted === column ? !falling : false;
    sorted = column;
    const sign = falling ? -1 : 1;
    order = Array.from(points.keys()).sort((a, b) => {
      const one = column.values[a] ?? null, other = column.values[b] ?? null;
      if (one === null || other === null) return (one === null) - (other === null);
      return sign * (one < other ? -1 : one > other ? 1 : 0);
    });
    for (const other of head.cells) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
    keep();
  }

  let first = -1;
  function place() {
    space.style.height = `${(kept.length + 1) * ROW_PX}px`;
    first = -1;
    drawRows();
  }

  function drawRows() {
    const began = performance.now();
    const from = Math.max(0, Math.floor(holder.scrollTop / ROW_PX) - MARGIN);
    if (from === first) return;
    first = from;
    const seen = Math.ceil(holder.clientHeight / ROW_PX) + 2 * MARGIN;
    const rows = document.createDocumentFragment();
    for (const k of kept.slice(from, from + seen)) {
      const row = document.createElement("tr");
      row.dataset.row = k;
      if (k === chosen) row.className = "chosen"; else if (!holds[k]) row.className = "broken";
      for (const column of shownColumns) {
        const cell = document.createElement("td");
        cell.textContent = text(column, column.values[k]) +
          (column.name === "point" && best.has(points[k]) ? " ★" : "");
        if (column.numeric) cell.className = "number";
        row.append(cell);
      }
      rows.append(row);
    }
    body.replaceChildren(rows);
    // The head stays at the top of what is seen; the rows stand where they would in a whole table.
    body.style.transform = `translateY(${from * ROW_PX}px)`;
    root.dataset.rowsMs = (performance.now() - began).toFixed(1);
  }

  holder.addEventListener("scroll", drawRows, { passive: true });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row) choose(Number(row.dataset.row));
  });

  const quoted = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`;
  function said(value, unit) {
    const plain = Array.isArray(value) ? JSON.stringify(value) : String(value);
    return unit ? `${plain} ${unit}` : plain;
  }

  function commandOf(k) {
    const { command, units, replays } = data.scenario;
    if (replays[points[k]]) return replays[points[k]];
    const words = [command];
    for (const { name, values } of factors) {
      const value = said(values[k], units[name]);
      words.push(name === "policy" ? `--policy ${quoted(value)}` : `--set ${quoted(`${name}=${value}`)}`);
    }
    if (data.seeds) words.push(`--set seed=${data.seeds[k]}`);
    return words.join(" ");
  }

  const ALIASES = { on: "plane", replications: "statistics.replications" };
  function put(whole, path, value) {
    let parts = path.split("."), part = whole;
    while (parts.length > 1) {
      let length = parts.length - 1; // a name may have dots itself
      while (length > 1 && !(parts.slice(0, length).join(".") in part)) length -= 1;
      const name = parts.slice(0, length).join(".");
      if (typeof part[name] !== "object" || part[name] === null) part[name] = {};
      part = part[name];
      parts = parts.slice(length);
    }
    part[parts[0]] = value;
  }

  function scenarioOf(k) {
    const { settings, parts, family, units } = data.scenario;
    const whole = structuredClone(settings);
    for (const { name, values } of factors) {
      const own = parts[name]?.[values[k]];
      if (own) whole[name] = structuredClone(own);
      else if (name in parts) whole[name] = values[k];
    }
    for (const { name, values } of factors) {
      if (name in parts) continue;
      if (name === "policy") {
        const [one, other] = String(values[k]).split("=");
        whole.policies[other ? one : family] = other ?? one;
      } else if (name === "horizon") {
        delete whole.event_horizon; delete whole.native_horizon;
        whole.horizon = said(values[k], units[name]);
      } else {
        put(whole, ALIASES[name] || name, units[name] ? said(values[k], units[name]) : values[k]);
      }
    }
    if (data.seeds) whole.seed = data.seeds[k];
    return whole;
  }

  const panel = document.getElementById("point");
  let link = null;
  function choose(k) {
    chosen = k;
    root.dataset.chosen = String(points[k]);
    const made = (tag, content) => Object.assign(document.createElement(tag), { textContent: content });
    const title = made("h4", `Point ${points[k]}`);
    const command = made("pre", commandOf(k));
    command.id = "command";
    const content = JSON.stringify(scenarioOf(k), null, 1);
    if (link) URL.revokeObjectURL(link);
    link = URL.createObjectURL(new Blob([content], { type: "application/yaml" }));
    const file = made("a", `scenario file (point-${points[k]}.yaml)`);
    file.href = link;
    file.download = `point-${points[k]}.yaml`;
    const details = document.createElement("details");
    const whole = made("pre", content);
    whole.id = "scenario";
    details.append(made("summary", "its scenario, to read"), whole);
    panel.replaceChildren(title, command, file, details);
    panel.hidden = false;
    first = -1;
    drawRows();
    drawAxes();
  }

  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => {
    conditions = parsed(filter.value);
    holder.scrollTop = 0;
    keep();
  });
  window.addEventListener("resize", drawAxes);
  keep();
  // "report.html#point=7" chooses a run, to link to it.
  const linked = /point=(\d+)/.exec(window.location.hash);
  if (linked) {
    const k = points.indexOf(Number(linked[1]));
    if (k >= 0) choose(k);
  }
})();
