// Agents: find one, and everything about it.

import { useEffect, useState } from "preact/hooks";
import { agentLink, agentPath, ask, nameInPath, query, usePolled, usePolledClasses } from "./api.js";
import { Badge, Change, Choice, Code, Command, Empty, Field, Loaded, Moment, Pages, Table, Tabs, count, html } from "./ui.js";
import { Client } from "./agent_client.js";
import { Audit, Events } from "./log.js";
import { Tables, Work } from "./work.js";

const PAGE = 50;

export const openTab = (agentClass, name, tab) => `${agentLink(agentClass, name)}?tab=${tab}`;

// ---- finding one --------------------------------------------------------------------------------

const listPath = (agentClass, after) => `/admin/agents${query({ class: agentClass, after, limit: PAGE })}`;

// Agents whose names begin with a text are the one of that name, and those behind it in byte order.
const foundIn = (prefix, exact, page) => [exact, ...page?.agents ?? []].filter((each) => each?.name?.startsWith(prefix));

function useFound(agentClass, prefix, after) {
  const exact = usePolled(prefix && !after ? agentPath(agentClass, prefix) : null, 5000);
  const page = usePolled(listPath(agentClass, after || prefix), 3000);
  if (!page.data) return page;
  const agents = foundIn(prefix, exact.data, page.data);
  return { ...page, data: { agents, next: agents.at(-1) === page.data.agents.at(-1) ? page.data.next : null } };
}

function List({ classes, agentClass, go }) {
  const [typed, setTyped] = useState("");
  const [prefix, setPrefix] = useState("");
  const [after, setAfter] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setPrefix(nameInPath(typed.trim())), 150);
    return () => clearTimeout(timer);
  }, [typed]);
  useEffect(() => setAfter(""), [agentClass, prefix]);
  const found = useFound(agentClass, prefix, after);
  // Enter may come before `typed` and the list follow. If a request fails, the list says it.
  const open = async (event) => {
    event.preventDefault();
    const name = nameInPath(event.target.querySelector("input").value.trim());
    const [exact, page] = await Promise.allSettled([agentPath(agentClass, name), listPath(agentClass, name)].map((path) => ask("GET", path)));
    const [first] = foundIn(name, exact.value, page.value);
    if (first) location.hash = agentLink(agentClass, first.name);
  };
  const known = classes.find((each) => each.class === agentClass);
  return html`
    <h1>Agents <small class="quiet">${known && `${count(known.agents)} of this class, ${count(known.live)} live`}</small></h1>
    <form class="filters" onSubmit=${open} role="search">
      <${Field} label="Class">
        <select value=${agentClass} onChange=${(event) => go(event.target.value)}>${classes.map((each) => html`<option value=${each.class}>${each.class}</option>`)}</select>
      <//>
      <${Field} label="Name begins with"><input data-search="" value=${typed} onInput=${(event) => setTyped(event.target.value)} placeholder="any" autocomplete="off" spellcheck=${false} /><//>
    </form>
    <${Loaded} of=${found}>${({ agents, next }) => agents.length === 0
      ? html`<${Empty} title=${`No agent of ${agentClass} ${prefix ? `begins with “${typed}”` : "yet"}`}>
          The first request for an agent makes it. ${known && html`Its clients connect to <code>${known.path}/NAME</code>.`}
        <//>`
      : html`<${Table} label="Agents" id=${(row) => row.name} rows=${agents} columns=${[
          { title: "Name", wide: true, cell: (row) => html`<a href=${agentLink(agentClass, row.name)}>${row.name}</a>` },
          { title: "State", cell: (row) => html`<${Badge} word=${row.state} />` },
          { title: "Clients", number: true, cell: (row) => count(row.connections) },
          { title: "Version", cell: (row) => row.version ?? html`<span class="quiet">–</span>` },
          { title: "Wakes", number: true, cell: (row) => (row.working ? "works" : html`<${Moment} ms=${row.next_wake_ms} ahead />`) },
          { title: "Created", number: true, cell: (row) => html`<${Moment} ms=${row.created_at_ms} />` },
        ]} />
        <${Pages} after=${after} next=${next} set=${setAfter} />`}<//>
  `;
}

// ---- one agent ----------------------------------------------------------------------------------

export const Waits = ({ waits }) => html`<ul class="waits">${waits.map((wait) => html`<li key=${wait.kind + wait.what} class=${wait.urgency}>
  <p class="wait-head"><${Badge} word=${wait.urgency} /> <strong>${wait.what}</strong></p>
  <p class="quiet">
    ${wait.since_ms !== null && html`since <${Moment} ms=${wait.since_ms} />. `}${wait.ends_by ?? ""}${wait.until_ms !== null && html` Ends <${Moment} ms=${wait.until_ms} ahead />.`}
  </p>
  ${wait.do && html`<p>${wait.do}</p>`}${wait.run && html`<${Command} text=${wait.run} />`}
</li>`)}</ul>`;

function Why({ agentClass, name }) {
  const why = usePolled(`${agentPath(agentClass, name)}/why`, 5000);
  return html`<${Loaded} of=${why}>${(data) => html`
    ${data.not_seen && html`<p class="note">${data.not_seen}</p>`}
    ${data.waits.length === 0 ? html`<${Empty} title="It waits for nothing">It is idle: the next event of a client or of another agent starts it.<//>` : html`<${Waits} waits=${data.waits} />`}
  `}<//>`;
}

export const operationColumns = (actions) => [
  { title: "Kind", cell: (row) => row.kind },
  { title: "State", cell: (row) => html`<${Badge} word=${row.state} />` },
  { title: "Effect", cell: (row) => row.effect },
  { title: "Tries", number: true, cell: (row) => row.attempts },
  { title: "Began", number: true, cell: (row) => html`<${Moment} ms=${row.started_at} />` },
  { title: "Request", cell: (row) => (row.request ? `${row.request.status ?? "no answer"}, ${count(row.request.stored_bytes)} bytes` : html`<span class="quiet">none</span>`) },
  { title: "Note", wide: true, cell: (row) => row.note ?? "" },
  ...actions,
];

const STATES = ["", "unknown", "interrupted", "running", "completed", "not_executed"];

function Operations({ agentClass, name }) {
  const [filter, setFilter] = useState({ state: "" });
  const [after, setAfter] = useState("");
  const [shown, setShown] = useState(null);
  const found = usePolled(`/admin/operations${query({ class: agentClass, agent: name, after, limit: PAGE, state: filter.state || STATES.slice(1) })}`, 3000);
  const set = (next) => {
    setFilter(next);
    setAfter("");
  };
  const one = usePolled(shown && `${agentPath(agentClass, name, "operations")}/${shown}`, 3000);
  return html`<div class="filters"><${Choice} title="State" words=${STATES} filter=${filter} set=${set} /></div>
    <${Loaded} of=${found}>${({ operations, skipped, next }) => html`
    ${skipped.map((each) => html`<p class="note">Not read: ${each.reason}</p>`)}
    ${operations.length === 0 ? html`<${Empty} title="No operations">Work that must not run twice is recorded here: <code>co_await operation(...)</code>.<//>`
      : html`<${Table} label="Operations" id=${(row) => row.id} rows=${operations} columns=${operationColumns([
          { title: "More", cell: (row) => html`<button class="button small" aria-expanded=${shown === row.id} aria-label=${`Details of ${row.kind} ${row.id}`} onClick=${() => setShown(shown === row.id ? null : row.id)}>Details</button>` },
        ])} />`}
    <${Pages} after=${after} next=${next} set=${setAfter} />
    ${shown && html`<${Loaded} of=${one}>${(record) => html`<${Code} label="The operation" value=${record} />`}<//>`}
  `}<//>`;
}

const TABS = [
  { word: "why", title: "Why", part: Why },
  { word: "client", title: "State and methods", part: Client },
  { word: "work", title: "Work", part: Work },
  { word: "tables", title: "Tables", part: Tables },
  { word: "operations", title: "Operations", part: Operations },
  { word: "log", title: "Log", part: Events },
  { word: "audit", title: "Audit", part: Audit },
];

function One({ agentClass, name, tab, classes }) {
  const agent = usePolled(agentPath(agentClass, name), 1000);
  const shown = TABS.find((each) => each.word === tab) ?? TABS[0];
  const path = agentPath(agentClass, name);
  const facts = agent.data;
  if (agent.error?.status === 404) return html`<h1>${agentClass}/${name}</h1>
    <${Empty} title="There is no such agent">It may have been destroyed. <a href=${`#/agent/${encodeURIComponent(agentClass)}`}>See the agents of ${agentClass}</a>.<//>`;
  return html`
    <p class="crumbs"><a href=${`#/agent/${encodeURIComponent(agentClass)}`}>${agentClass}</a></p>
    <h1 class="agent-name">${name} ${facts && html`<${Badge} word=${facts.state} />`}</h1>
    <${Loaded} of=${agent}>${() => html`<div class="facts"><dl>
      <div><dt>Clients</dt><dd class="number">${count(facts.connections)}</dd></div>
      <div><dt>Version</dt><dd>${facts.version ?? "–"}</dd></div>
      <div><dt>Wakes</dt><dd>${facts.working ? "works" : html`<${Moment} ms=${facts.next_wake_ms} ahead />`}</dd></div>
      <div><dt>Created</dt><dd><${Moment} ms=${facts.created_at_ms} /></dd></div>
    </dl>
      <div class="facts-end">
        <${Change} label="Evict" disabled=${facts.state !== "live"} run=${() => ask("POST", `${path}/evict`).then(agent.again)} />
        <${Change} label="Destroy" danger confirm="Delete it with all its data, for ever?" run=${() => ask("DELETE", path).then(agent.again)} />
      </div>
    </div>`}<//>
    <${Tabs} label="Parts of the agent" tabs=${TABS} shown=${shown} to=${agentLink(agentClass, name)} />
    <${shown.part} key=${shown.word} agentClass=${agentClass} name=${name} classes=${classes} />
  `;
}

export function Agent({ where }) {
  const seen = usePolledClasses();
  const classes = seen.data;
  const agentClass = decodeURIComponent(where.rest[0] ?? "");
  const name = where.rest.slice(1).join("/");
  if (name) return html`<${One} key=${location.hash.split("?")[0]} agentClass=${agentClass} name=${name} tab=${where.parameters.get("tab")} classes=${classes} />`;
  if (classes === null) return html`<h1>Agents</h1><${Loaded} of=${seen} />`;
  if (classes.length === 0) return html`<h1>Agents</h1><${Empty} title="No class is served">Put a library into the plugins directory, or begin one with <code>hearth new</code>.<//>`;
  const chosen = agentClass || [...classes].sort((a, b) => b.agents - a.agents)[0].class;
  return html`<${List} key=${chosen} classes=${classes} agentClass=${chosen} go=${(next) => (location.hash = `#/agent/${encodeURIComponent(next)}`)} />`;
}
