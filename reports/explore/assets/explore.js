// What the page does by itself: sliders and their texts, the choice as a whole, the machine's picture.
"use strict";

(() => {
  const page = Math.random().toString(36).slice(2);
  const LOW = -2, HIGH = 2, PHONE_PX = 760;

  const rounded = (value, field) =>
    field.whole ? String(Math.max(1, Math.round(value))) : String(Number(value.toPrecision(4)));

  // A phone has no room for the legend, which stands to the right of the machine.
  const withoutLegend = (place) => {
    const picture = place.querySelector("svg"), legend = place.querySelector(".legend");
    if (!legend) return;
    picture.setAttribute("viewBox", `0 0 ${legend.dataset.left} ${picture.getAttribute("height")}`);
    picture.setAttribute("width", legend.dataset.left);
    legend.remove();
  };

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explore: {
      // A slider moves in powers of two of its field's value; its text may say any value.
      link(position, text, field) {
        const none = window.dash_clientside.no_update;
        const cause = window.dash_clientside.callback_context.triggered_id;
        if (!cause || !field) return [none, none];
        if (cause.kind === "slider") {
          const number = rounded(field.value * 2 ** position, field);
          return [none, position === 0 ? field.own : `${number} ${field.unit}`.trim()];
        }
        const [, number, unit] = /^\s*([-+.\deE_]+)\s*(.*?)\s*$/.exec(text ?? "") ?? [];
        const times = Number((number ?? "").replaceAll("_", "")) / field.value;
        if (unit !== field.unit || !(times > 0)) return [none, none];
        return [Math.min(HIGH, Math.max(LOW, Math.log2(times))), none];
      },

      // What differs from the scenario, as settings and menus.
      choose(texts, menus, fields, ids) {
        const settings = {};
        texts.forEach((text, k) => {
          const field = fields[k];
          if (field && text != null && text !== "" && text !== field.own) settings[field.path] = String(text);
        });
        const chosen = {};
        ids.forEach((id, k) => { if (menus[k]) chosen[id.name] = menus[k]; });
        return { page, number: performance.now(), settings, menus: chosen };
      },

      // The server escapes every text in the picture; the policy of the page runs no script in it.
      draw(svg) {
        const place = document.getElementById("picture");
        if (svg == null) return window.dash_clientside.no_update;
        place.innerHTML = svg;
        if (window.innerWidth <= PHONE_PX) withoutLegend(place);
        document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn ?? 0) + 1);
        return "";
      },
    },
  });
})();
