// Draws the pictures of a report from the JSON beside them, those in folded parts when these open.
// The root element counts them: data-plots, data-drawn, data-failed, and data-ready when all that
// is visible is drawn.
"use strict";
(() => {
  const root = document.documentElement;
  const plots = [...document.querySelectorAll(".plot")];
  const PHONE_PX = 700;
  const options = {
    displaylogo: false,
    displayModeBar: window.matchMedia("(hover: none)").matches ? false : "hover",
    typesetMath: false,
    showTips: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  // Plotly comes packed, which makes a page a third as large; the page's policy knows its hash.
  async function unpack() {
    const packed = atob(document.getElementById("plotly").textContent);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }
  let unpacked = null;

  const count = { plots: plots.length, drawn: 0, failed: 0 };

  function tell() {
    for (const [name, number] of Object.entries(count)) root.dataset[name] = String(number);
  }

  // Ink, soft ink, grid, axes and black of charts.py, and what they are on a dark page.
  const DARK = {
    "#1b2733": "#dde5ec", "#5b6875": "#a3b1be", "#e6eaee": "#2c3742", "#b4bec8": "#566472",
    "#000000": "#ffffff", "#0072b2": "#4aa8e0",
  };

  function forDark(text) {
    if (!window.matchMedia("(prefers-color-scheme: dark)").matches) return text;
    return text.replace(/"(#[0-9a-f]{6})"/gi, (whole, colour) =>
      colour.toLowerCase() in DARK ? `"${DARK[colour.toLowerCase()]}"` : whole);
  }

  const broken = (text) =>
    text.includes("<br>") ? text : text.replace(/(.{14,}?) /g, "$1<br>");

  function forPhones(layout, bars) {
    // Names of phases would lie over each other, and axes leave little room.
    if (window.innerWidth >= PHONE_PX) return layout;
    layout.annotations = (layout.annotations || []).filter((one) => one.name !== "phase");
    layout.margin = { ...layout.margin, l: Math.min(layout.margin?.l ?? 60, 56), r: bars ? 28 : 8 };
    layout.dragmode = false; // a finger scrolls the page
    for (const [name, axis] of Object.entries(layout)) {
      if (name.startsWith("xaxis")) Object.assign(axis, { nticks: 4, tickangle: 0 });
      // Long names leave bars, and what stands at their ends, room in two lines.
      if (name.startsWith("yaxis") && bars) axis.ticktext = axis.ticktext?.map(broken);
    }
    return layout;
  }

  async function draw(holder) {
    if (holder.dataset.state) return;
    holder.dataset.state = "drawing";
    try {
      const text = document.querySelector(`[data-plot="${holder.id}"]`).textContent;
      const figure = JSON.parse(forDark(text));
      const layout = forPhones(figure.layout, figure.data[0]?.type === "bar");
      unpacked ||= unpack();
      await unpacked;
      await Plotly.newPlot(holder, figure.data, layout, { ...options, responsive: true });
      holder.dataset.state = "drawn";
      count.drawn += 1;
    } catch (failure) {
      holder.dataset.state = "failed";
      holder.textContent = `This picture could not be drawn: ${failure.message}`;
      count.failed += 1;
    }
    tell();
  }

  async function drawVisible(within) {
    for (const holder of within.querySelectorAll(".plot")) {
      if (!holder.closest("details:not([open])")) await draw(holder);
    }
  }

  window.addEventListener("error", () => { count.failed += 1; tell(); });
  for (const part of document.querySelectorAll("details")) {
    part.addEventListener("toggle", () => drawVisible(part));
  }
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  // "report.html#unfolded" opens all parts, to print all of a report from a script.
  if (window.location.hash === "#unfolded") {
    for (const part of document.querySelectorAll("details")) part.open = true;
  }
  tell();
  drawVisible(document).then(() => { root.dataset.ready = "yes"; });
})();
