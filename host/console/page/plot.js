// A line over the last minutes.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clock, html } from "./ui.js";

const HEIGHT = 120;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// uPlot paints on a canvas, which knows no variables of the style sheet.
function painted(name) {
  const probe = document.createElement("span");
  probe.style.color = colour(name);
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(value));

function optionsFor(width) {
  const axis = { stroke: painted("--quiet"), grid: { stroke: painted("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.15, 1)] } },
    axes: [{ ...axis, space: 80, size: 26, values: (_, moments) => moments.map((each) => (each > 1e9 ? clock(each * 1000) : "")) }, { ...axis, size: 40, space: 32, values: (_, values) => values.map(short) }],
    series: [{}, { stroke: painted("--accent"), fill: painted("--accent-soft"), width: 1.5, points: { show: false } }],
  };
}

// `times` in seconds; `values` has null where nothing was seen.
export function Plot({ title, unit, times, values, now }) {
  const box = useRef(null);
  const plot = useRef(null);
  useEffect(() => {
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsFor(box.current.clientWidth), plot.current?.data ?? [times, values], box.current);
    };
    make();
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: box.current.clientWidth, height: HEIGHT }));
    observer.observe(box.current);
    window.addEventListener("themechange", make);
    return () => {
      observer.disconnect();
      window.removeEventListener("themechange", make);
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData([times, values]), [times, values]);
  const text = now === null ? "–" : now >= 100 ? Math.round(now).toLocaleString("en") : now.toFixed(now >= 10 || Number.isInteger(now) ? 0 : 1);
  return html`<figure class="plot">
    <figcaption><span>${title}</span><strong class="number">${text}<small> ${unit}</small></strong></figcaption>
    <div ref=${box} role="img" aria-label=${`${title}: ${text} ${unit}`}></div>
  </figure>`;
}
