// The log as it happens, and the audit log.

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { agentLink, link, query, readStream, usePolled, useSettled, parse } from "./api.js";
import { Badge, Choice, Empty, Loaded, Mistake, Table, Tabs, Texts, clock, count, html, pretty } from "./ui.js";

const ROWS = 200; // in the page
const KEPT = 10_000; // events that one can go back to

// ---- columns ----

const timeColumn = { title: "Time", cell: ({ at_ms }) => html`<time class="number" title=${new Date(at_ms).toLocaleString()}>${clock(at_ms)}</time>` };
const agentColumn = { title: "Agent", cell: (row) => (row.agent ? html`<a href=${agentLink(row.class, row.agent)}>${row.class}/${row.agent}</a>` : row.class) };
const OneLine = ({ text }) => html`<code class="one-line" title=${text}>${text}</code>`;

// ---- the log ----

// Takes the pieces of a stream of server-sent events.
function eventParser(take) {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) take(Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s))));
  };
}

function rowOf({ id, event: type, data }) {
  const { time, level, event, class: agentClass, agent, trace, ...rest } = parse(data);
  if (type === "gap") return { id: `${id} gap`, at_ms: Date.now(), level: "warn", event: `${rest.missed ?? "Some"} events are missing`, detail: rest.reason };
  const detail = Object.entries(rest).map(([key, value]) => `${key}=${pretty(value)}`).join(" ");
  return { id, at_ms: Date.parse(time), level, event, class: agentClass, agent, trace: trace?.split("-")[1], detail };
}

// Reads the events since `filter.since_ms`, or of the last minute, and new ones. Goes on where it
// was when the connection breaks: {rows: the oldest first, total, isLive, error}.
export function useEvents(filter) {
  const seen = useRef({ rows: [], total: 0 });
  const [, paint] = useReducer((number) => number + 1, 0);
  useEffect(() => {
    let stop = new AbortController();
    let isOver = false;
    // Each open stream takes one of the few connections that a browser has for a host.
    const hide = () => document.hidden && stop.abort();
    const shown = () => new Promise((go) => (document.hidden ? document.addEventListener("visibilitychange", () => go(shown()), { once: true }) : go()));
    document.addEventListener("visibilitychange", hide);
    const now = (seen.current = { rows: [], total: 0, isLive: false, error: null });
    let timer;
    const later = () => (timer ??= setTimeout(() => { timer = undefined; paint(); }, 100));
    let last;
    const take = (event) => {
      last = event.id ?? last;
      if (!event.data) return;
      now.rows.push(rowOf(event));
      now.total += event.event ? 0 : 1;
      if (now.rows.length > KEPT + ROWS) now.rows.splice(0, ROWS);
    };
    const read = async () => {
      while ((await shown(), !isOver && link.get() !== "over")) {
        stop = new AbortController();
        const parse = eventParser(take);
        const begin = last ? { after: last } : { since_ms: Date.now() - 60_000 };
        now.error = null;
        await readStream(`/admin/events${query({ ...begin, ...filter })}`, stop.signal, {}, (text) => {
          now.isLive = true;
          parse(text);
          later();
        }).catch((error) => (now.error = error));
        now.isLive = false;
        later();
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    };
    read();
    return () => {
      isOver = true;
      document.removeEventListener("visibilitychange", hide);
      stop.abort();
      clearTimeout(timer);
    };
  }, [JSON.stringify(filter)]);
  return seen.current;
}

// Of all agents, or of one.
export function Events({ agentClass = "", name = "" }) {
  const [filter, setFilter] = useState({ level: "info", class: agentClass, agent: name, trace: "" });
  const { rows, total, isLive, error } = useEvents(useSettled(filter));
  const [held, setHeld] = useState(null); // the rows, while one looks back
  const [back, setBack] = useState(0);
  const look = (pages) => {
    setHeld(held ?? [...rows]);
    setBack(pages);
  };
  const all = held ?? rows;
  const end = all.length - back * ROWS;
  const set = (next) => {
    setHeld(null);
    setBack(0);
    setFilter(next);
  };
  return html`
    <div class="filters">
      <${Choice} title="Level" words=${["debug", "info", "warn", "error"]} filter=${filter} set=${set} />
      <${Texts} titles=${name ? ["Trace"] : ["Class", "Agent", "Trace"]} filter=${filter} set=${set} />
    </div>
    <p class="pager">
      <button class="button" aria-pressed=${held !== null} onClick=${() => (held ? set(filter) : look(0))}>${held ? "Go on" : "Pause"}</button>
      <button class="button" disabled=${end <= ROWS} onClick=${() => look(back + 1)}>Older</button>
      <button class="button" disabled=${back === 0} onClick=${() => look(back - 1)}>Newer</button>
      <span class="quiet" role="status">${isLive ? (held ? "paused" : "live") : "connecting …"}</span>
      <span class="quiet number">${count(total)} events</span>
    </p>
    <${Mistake} error=${error?.status ? error : null} />
    ${all.length === 0 ? html`<${Empty} title="No event in the last minute">New ones come as they happen.<//>`
      : html`<${Table} label="Events" id=${(row) => row.id} rows=${all.slice(Math.max(0, end - ROWS), end).reverse()} columns=${[
          timeColumn,
          { title: "Level", cell: (row) => html`<${Badge} word=${row.level} />` },
          { title: "Event", cell: (row) => row.event },
          agentColumn,
          { title: "Trace", cell: ({ trace }) => trace && html`<button class="button small" aria-label=${`Only the trace ${trace}`} onClick=${() => set({ ...filter, trace })}>${trace.slice(0, 8)}</button>` },
          { title: "Detail", wide: true, cell: (row) => html`<${OneLine} text=${row.detail} />` },
        ]} />`}
  `;
}

// ---- the audit log ----

export function Audit({ agentClass = "", name = "" }) {
  const [filter, setFilter] = useState({ event: "", actor: "", class: agentClass, agent: name });
  const found = usePolled(`/admin/audit${query({ ...useSettled(filter), last: ROWS })}`, 2000);
  return html`
    <div class="filters">
      <${Choice} title="Actor" words=${["", "console", "administrator", "server", "agent", "client"]} filter=${filter} set=${setFilter} />
      <${Texts} titles=${name ? ["Event"] : ["Event", "Class", "Agent"]} filter=${filter} set=${setFilter} />
    </div>
    <${Loaded} of=${found}>${({ entries }) => entries.length === 0 ? html`<${Empty} title="No entry is like that">Filters are whole names, such as <code>ReloadDone</code>.<//>`
      : html`<${Table} label="Audit log" id=${(row) => row.id} rows=${[...entries].reverse()} columns=${[
          timeColumn,
          { title: "Event", cell: (row) => row.event },
          { title: "Actor", cell: (row) => row.actor },
          agentColumn,
          { title: "Detail", wide: true, cell: (row) => row.detail && html`<${OneLine} text=${JSON.stringify(row.detail)} />` },
        ]} />`}<//>
  `;
}

const TABS = [
  { word: "live", title: "As it happens", part: Events },
  { word: "audit", title: "Audit", part: Audit },
];

export function Log({ where }) {
  const shown = TABS.find((each) => each.word === where.parameters.get("tab")) ?? TABS[0];
  return html`<h1>Log and audit</h1><${Tabs} label="Logs" tabs=${TABS} shown=${shown} to="#/log" /><${shown.part} key=${shown.word} />`;
}
