// The audit log: what was done on the server.

import { useState } from "preact/hooks";
import { query, usePolled, useSettled } from "./api.js";
import { Empty, Field, Loaded, Table, html } from "./ui.js";
import { auditColumns } from "./agent.js";

const KEPT = 300; // rows in the page

export function Log() {
  const [filter, setFilter] = useState({ event: "", actor: "", class: "", agent: "" });
  const found = usePolled(`/admin/audit${query({ ...useSettled(filter), last: KEPT })}`, 2000);
  const set = (key) => (event) => setFilter({ ...filter, [key]: event.target.value });
  return html`
    <h1>Audit <small class="quiet">what was done to objects, libraries and settings; the newest first</small></h1>
    <div class="filters">
      <${Field} label="Actor"><select value=${filter.actor} onChange=${set("actor")}><option value="">any</option>${["console", "administrator", "server", "agent", "client"].map((each) => html`<option>${each}</option>`)}</select><//>
      <${Field} label="Event"><input value=${filter.event} onInput=${set("event")} placeholder="any" spellcheck=${false} /><//>
      <${Field} label="Class"><input value=${filter.class} onInput=${set("class")} placeholder="any" spellcheck=${false} /><//>
      <${Field} label="Agent"><input value=${filter.agent} onInput=${set("agent")} placeholder="any" spellcheck=${false} /><//>
    </div>
    <${Loaded} of=${found}>${({ entries }) => entries.length === 0 ? html`<${Empty} title="No entry is like that">Filters are whole names, such as <code>ReloadDone</code>.<//>`
      : html`<${Table} label="Audit log" id=${(row) => row.id} rows=${[...entries].reverse()} columns=${auditColumns} />`}<//>
  `;
}
