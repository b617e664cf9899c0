// Is it working, or is it stuck?

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { askText, link, usePolled, useClasses, watchable, useWatched } from "./api.js";
import { Badge, Empty, Loaded, Section, Table, Waiting, clock, count, html, span } from "./ui.js";

const EVERY_MS = 2000;
const KEPT = 150; // samples: five minutes

// ---- a line over the last minutes ----

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
function Plot({ title, unit, times, values, now }) {
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

// ---- the server's figures, from /metrics ----

// Sums over labels.
export function figuresIn(text) {
  const sums = {};
  for (const line of text.split("\n")) {
    const name = /^\w+/.exec(line)?.[0];
    if (name) sums[name] = (sums[name] ?? 0) + Number(line.slice(line.lastIndexOf(" ") + 1));
  }
  return sums;
}

const EMPTY = { times: [], events: [], commits: [], live: [], last: null, at: 0 };
const history = watchable(EMPTY);
let looking = false;

function add(sums, at) {
  const before = history.get();
  const seconds = (at - before.at) / 1000;
  // A restart begins the counters again; a pause makes a gap.
  const isNext = before.last && seconds < 4 * (EVERY_MS / 1000);
  const rate = (name) => (isNext && sums[name] >= before.last[name] ? (sums[name] - before.last[name]) / seconds : null);
  const kept = (list, value) => [...list, value].slice(-KEPT);
  history.set({
    times: kept(before.times, at / 1000),
    events: kept(before.events, rate("hearth_event_duration_seconds_count")),
    commits: kept(before.commits, rate("hearth_commits_total")),
    live: kept(before.live, sums.hearth_live_agents ?? 0),
    last: sums,
    at,
  });
}

// From the first look at the overview on, so that the plots are there when one comes back.
async function lookOn() {
  if (looking) return;
  looking = true;
  while (link.get() !== "over") {
    if (!document.hidden) await askText("/metrics").then((text) => add(figuresIn(text), Date.now())).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
  looking = false;
}

// ---- the place ----

const Card = ({ title, value, tone, href, note }) => html`<a class=${`card ${tone ?? ""}`} href=${href}>
  <span class="card-title">${title}</span><strong class="number">${value}</strong><span class="quiet">${note}</span>
</a>`;

function Cards({ figures }) {
  const stuck = usePolled("/admin/stuck?limit=1000", 5000);
  const quarantine = usePolled("/admin/quarantine", 5000);
  const found = stuck.data?.agents;
  const unknown = figures?.hearth_operations_unknown ?? null;
  const held = quarantine.data?.quarantined.length ?? null;
  const tone = (number) => (number > 0 ? "bad" : "");
  const more = stuck.data?.next ? "+" : "";
  return html`<div class="cards">
    <${Card} title="Live agents" value=${count(figures?.hearth_live_agents)} href="#/agent" note="in memory now" />
    <${Card} title="Stuck" value=${found ? count(found.length) + more : "–"} tone=${tone(found?.length)} href="#/waits" note="need a person, or wait too long" />
    <${Card} title="Unknown operations" value=${count(unknown)} tone=${tone(unknown)} href="#/waits" note="may have taken place" />
    <${Card} title="Quarantined" value=${count(held)} tone=${tone(held)} href="#/waits" note="classes that crashed too often" />
  </div>`;
}

const lastOf = (list) => list.at(-1) ?? null;

export function Overview() {
  const seen = useWatched(history);
  const classes = useClasses();
  const [, redraw] = useState(0);
  useEffect(() => {
    lookOn();
    redraw(1);
  }, []);
  const figures = seen.last;
  const note = figures && `up ${span(figures.hearth_uptime_seconds * 1000)} · ${count(figures.hearth_connections)} ${figures.hearth_connections === 1 ? "client" : "clients"} · ${count(Math.round(figures.hearth_process_resident_memory_bytes / 1048576))} MiB`;
  return html`
    <h1>Overview <small class="quiet">${note}</small></h1>
    <${Cards} figures=${figures} />
    <div class="plots">
      <${Plot} title="Events" unit="a second" times=${seen.times} values=${seen.events} now=${lastOf(seen.events)} />
      <${Plot} title="Commits" unit="a second" times=${seen.times} values=${seen.commits} now=${lastOf(seen.commits)} />
      <${Plot} title="Live agents" unit="" times=${seen.times} values=${seen.live} now=${lastOf(seen.live)} />
    </div>
    <${Section} title="Classes" note=${classes && `${classes.length} served`}>
      ${classes === null ? html`<${Waiting} />` : classes.length === 0 ? html`<${Empty} title="No class is served">Put a library into the plugins directory, or begin one with <code>hearth new</code>.<//>` : html`<${Table}
        label="Classes"
        id=${(row) => row.class}
        rows=${classes}
        columns=${[
          { title: "Class", cell: (row) => html`<a href=${`#/agent/${encodeURIComponent(row.class)}`}>${row.class}</a>` },
          { title: "State", cell: (row) => html`<${Badge} word=${row.refusal ? "refused" : "current"} />` },
          { title: "Live", number: true, cell: (row) => count(row.live) },
          { title: "Agents", number: true, cell: (row) => count(row.agents) },
          { title: "Version", cell: (row) => row.version },
          { title: "Library", wide: true, cell: (row) => html`<span class="quiet" title=${row.library}>${row.library.split("/").at(-1)}</span>${row.refusal && html` ${row.refusal}`}` },
        ]}
      />`}
    <//>
  `;
}
