// An agent's fibers, schedules and queue, the timeline of one of them, and the agent's tables.

import { useState } from "preact/hooks";
import { agentPath, ask, query, usePolled, typed } from "./api.js";
import { Badge, Change, Choice, Code, Empty, Field, Loaded, Mistake, Moment, Pages, Section, Table, Texts, clock, html, pretty } from "./ui.js";
import { useEvents } from "./log.js";

// ---- what can be done ----

const isOpen = ({ state }) => !["completed", "error", "aborted", "interrupted"].includes(state);
// A state, or "retry": it waits for another try.
const is = (...states) => ({ state, next_at: next }) => states.includes(state) || (next !== null && states.includes("retry"));
const isStopped = is("dead", "interrupted", "waits_for_code", "retry");
const ACTIONS = {
  fiber: [
    ["Revive", "revive", isStopped],
    ["Cancel", "cancel", isOpen, "It ends, aborted."],
  ],
  schedule: [
    ["Run now", "run", (row) => !is("dead", "paused")(row)],
    ["Pause", "pause", (row) => !is("dead", "paused")(row)],
    ["Resume", "resume", is("paused")],
    ["Revive", "revive", is("dead", "missing")],
    ["Cancel", "cancel", () => true, "It is removed."],
  ],
  item: [
    ["Retry", "revive", is("dead")],
    ["Drop", "cancel", () => true, "It is removed."],
  ],
};

const Actions = ({ path, row, again }) => ACTIONS[row.kind].filter(([, , isFor]) => isFor(row)).map(([label, action, , confirm]) => html`<${Change} key=${action} small label=${label} name=${`${label} ${row.name} ${row.id}`} confirm=${confirm}
  run=${() => ask("POST", `${path}/${row.kind}/${encodeURIComponent(row.id)}/${action}`).then(again)} /> `);

function End({ path, row, again }) {
  const [result, setResult] = useState("");
  const run = async () => ask("POST", `${path}/fiber/${row.id}/end`, { outcome: { status: "completed", result: typed(result || "null") } }).then(again);
  return html`<div class="filters">
    <${Field} label="Its result, as JSON"><input value=${result} placeholder="null" spellcheck=${false} onInput=${(event) => setResult(event.target.value)} /><//>
    <${Change} label="End it as completed" confirm="Its code does not go on." run=${run} />
  </div>`;
}

// ---- one of them ----

function stepsOf(row, events) {
  const { record, operations } = row;
  const steps = [
    [record.created_at, "created"],
    [record.started_at, "begun", record.attempts > 0 && `recoveries since the last checkpoint: ${record.attempts}`],
    ...(operations ?? []).flatMap((each) => [
      [each.started_at, `operation ${each.kind}`, `${each.effect}, ${each.state}, tries: ${each.attempts}`],
      [each.request?.dispatched_at, `request of ${each.kind}`, `${each.request?.status ?? "no answer"}, ${each.request?.stored_bytes} bytes`],
      [each.settled_at, `operation ${each.kind}: ${each.state}`, each.note ?? each.settled_by],
    ]),
    ...events.filter((each) => each.detail.includes(row.id)).map((each) => [each.at_ms, each.event, each.detail.replace(/^\S+ ?/, "")]),
    [record.last_run, "last run"],
    [record.completed_at, record.status, record.error],
    [row.next_at, "goes on"],
  ];
  return steps.filter(([at]) => at).reverse().sort(([one], [other]) => other - one).slice(0, 200);
}

function Detail({ agentClass, name, path, row, again }) {
  const found = usePolled(`${path}/${row.kind}/${encodeURIComponent(row.id)}`);
  const { rows } = useEvents({ level: "debug", class: agentClass, agent: name, since_ms: row.created_at });
  return html`<${Section} title=${row.name} note=${html`${row.kind} <code>${row.id}</code>`}><${Loaded} of=${found}>${(one) => html`
    ${one.record.snapshot != null && html`<p>Last checkpoint</p><${Code} label="Last checkpoint" value=${one.record.snapshot} />`}
    <${Table} label="Timeline" id=${(step) => step.join()} rows=${stepsOf(one, rows)} columns=${[
      { title: "Time", cell: ([at]) => html`<span class="number">${clock(at)}</span> <span class="quiet"><${Moment} ms=${at} /></span>` },
      { title: "What", cell: ([, what]) => what },
      { title: "Detail", wide: true, cell: ([, , detail]) => detail },
    ]} />
    ${row.kind === "fiber" && isStopped(one) && html`<${End} path=${path} row=${one} again=${again} />`}
    <details class="more"><summary>All that is recorded</summary><${Code} label="The record" value=${one.record} /></details>
  `}<//><//>`;
}

export function Work({ agentClass, name }) {
  const [filter, setFilter] = useState({ kind: "", state: "" });
  const [after, setAfter] = useState("");
  const [shown, setShown] = useState(null);
  const path = `${agentPath(agentClass, name)}/work`;
  const found = usePolled(`${path}${query({ ...filter, after, limit: 50 })}`);
  const set = (next) => {
    setFilter(next);
    setAfter("");
  };
  return html`
    <div class="filters">
      <${Choice} title="Kind" words=${["", "fiber", "schedule", "item"]} filter=${filter} set=${set} />
      <${Texts} titles=${["State"]} filter=${filter} set=${set} />
    </div>
    <${Loaded} of=${found}>${({ work, next }) => html`
      ${work.length === 0 ? html`<${Empty} title="No work is like that">Fibers, schedules and the queue go on after a restart; they stand here.<//>` : html`<${Table} label="Work" id=${(row) => row.id} rows=${work} columns=${[
        { title: "Kind", cell: (row) => row.kind },
        { title: "Name", cell: (row) => row.name },
        { title: "State", cell: (row) => html`<${Badge} word=${row.state} />` },
        { title: "Created", number: true, cell: (row) => html`<${Moment} ms=${row.created_at} />` },
        { title: "Next", number: true, cell: (row) => html`<${Moment} ms=${row.next_at} ahead />` },
        { title: "Do", cell: (row) => html`<button class="button small" aria-expanded=${shown?.id === row.id} aria-label=${`Timeline of ${row.name} ${row.id}`} onClick=${() => setShown(shown?.id === row.id ? null : row)}>Timeline</button> <${Actions} path=${path} row=${row} again=${found.again} />` },
        { title: "Error", wide: true, cell: (row) => row.error },
      ]} />`}
      <${Pages} after=${after} next=${next} set=${setAfter} />
    `}<//>
    ${shown && html`<${Detail} key=${shown.id} agentClass=${agentClass} name=${name} path=${path} row=${shown} again=${found.again} />`}
  `;
}

// ---- tables ----

const LIST = "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name";

export function Tables({ agentClass, name }) {
  const [sql, setSql] = useState(LIST);
  const [answer, setAnswer] = useState({});
  const run = async (event) => {
    event.preventDefault();
    try {
      setAnswer(await ask("POST", `${agentPath(agentClass, name)}/sql`, { sql }));
    } catch (error) {
      setAnswer({ error });
    }
  };
  const { columns, rows, truncated, error } = answer;
  return html`
    <form class="say" onSubmit=${run}>
      <${Field} label="SQL that reads; each run is in the audit log"><textarea rows="3" spellcheck=${false} value=${sql} onInput=${(event) => setSql(event.target.value)} /><//>
      <button class="button primary">Run</button>
    </form>
    <${Mistake} error=${error} />
    ${rows && html`<p class="quiet">${rows.length} rows${truncated && "; there are more"}</p>
      <${Table} label="Rows" id=${(row) => rows.indexOf(row)} rows=${rows} columns=${columns.map((title, at) => ({ title, cell: (row) => (row[at] === null ? html`<span class="quiet">NULL</span>` : html`<code>${pretty(row[at].blob ?? row[at])}</code>`) }))} />`}
  `;
}
