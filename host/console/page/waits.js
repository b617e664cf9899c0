// What ends only if a person does something.

import { useState } from "preact/hooks";
import { agentLink, agentPath, ask, query, useClasses, usePolled, typed } from "./api.js";
import { Change, Empty, Field, Loaded, Moment, Pages, Section, Table, count, html } from "./ui.js";
import { Waits as WaitList, openTab, operationColumns } from "./agent.js";

function Stuck() {
  const classes = useClasses();
  const [agentClass, setClass] = useState("");
  const [after, setAfter] = useState("");
  const found = usePolled(`/admin/stuck${query({ class: agentClass, after, limit: 100 })}`, 4000);
  const choose = html`<${Field} label="Look at">
    <select value=${agentClass} onChange=${(event) => { setClass(event.target.value); setAfter(""); }}>
      <option value="">what is known at once</option>
      <option value="*">each agent</option>
      ${(classes ?? []).map((each) => html`<option value=${each.class}>each agent of ${each.class}</option>`)}
    </select>
  <//>`;
  return html`<${Section} title="Stuck agents" note=${found.data && `${count(found.data.agents.length)}${found.data.next ? "+" : ""}`} actions=${choose}>
    <${Loaded} of=${found}>${({ agents, skipped, next }) => html`
      ${skipped.length > 0 && html`<p class="note">${skipped.length} not looked at: ${skipped[0].reason}</p>`}
      ${agents.length === 0 && !next && html`<${Empty} title="No agent is stuck">${agentClass ? "Each agent was looked at." : "Chats that wait for an approval are found only if each agent is looked at."}<//>`}
      ${agents.map((each) => html`<article class="stuck" key=${`${each.class}/${each.agent}`}>
        <h3><a href=${agentLink(each.class, each.agent)}>${each.class}/${each.agent}</a></h3>
        <${WaitList} waits=${each.waits.filter((wait) => wait.urgency !== "none")} />
      </article>`)}
      <${Pages} after=${after} next=${next} set=${setAfter} />
    `}<//>
  <//>`;
}

function Resolve({ operation, again }) {
  const [outcome, setOutcome] = useState("completed");
  const [result, setResult] = useState("");
  const [note, setNote] = useState("");
  const run = async () => {
    const body = { outcome };
    if (note) body.note = note;
    if (outcome === "completed" && result) {
      try {
        body.result = typed(result);
      } catch (error) {
        throw error.name !== "SyntaxError" ? error : new Error("The result is JSON: a text needs quotes.");
      }
    }
    await ask("POST", `${agentPath(operation.class, operation.agent, "operations")}/${operation.id}/resolve`, body);
    again();
  };
  return html`<div class="filters">
    <${Field} label="What became of it">
      <select value=${outcome} onChange=${(event) => setOutcome(event.target.value)}>
        <option value="completed">It was executed</option>
        <option value="not_executed">It was not executed: it may run</option>
      </select>
    <//>
    ${outcome === "completed" && html`<${Field} label="Its result, as JSON"><input value=${result} placeholder="null" spellcheck=${false} onInput=${(event) => setResult(event.target.value)} /><//>`}
    <${Field} label="How you know"><input value=${note} onInput=${(event) => setNote(event.target.value)} /><//>
    <${Change} label="Record it" name=${`Record the outcome of ${operation.kind}`} confirm="This cannot be taken back." run=${run} />
  </div>`;
}

function Unknown() {
  const found = usePolled("/admin/operations?state=unknown&limit=100", 4000);
  return html`<${Section} title="Unknown operations" note="They may have taken place: look at the other side, then record what became of them.">
    <${Loaded} of=${found}>${({ operations, skipped, next }) => html`
      ${skipped.length > 0 && html`<p class="note">${skipped.length} agents could not be read: ${skipped[0].reason}</p>`}
      ${operations.length === 0 ? html`<${Empty} title="No operation is unknown">The outcome of each is known, or the agent finds it out by itself.<//>`
        : operations.map((each) => html`<article class="stuck" key=${each.id}>
            <h3><a href=${openTab(each.class, each.agent, "operations")}>${each.class}/${each.agent}</a></h3>
            <${Table} label=${`Operation ${each.kind}`} id=${(row) => row.id} rows=${[each]} columns=${operationColumns([])} />
            <${Resolve} operation=${each} again=${found.again} />
          </article>`)}
      ${next && html`<p class="quiet">There are more; they come when these are settled.</p>`}
    `}<//>
  <//>`;
}

function Quarantine() {
  const found = usePolled("/admin/quarantine", 4000);
  return html`<${Section} title="Quarantine" note="Classes whose code crashed the server too often. Their agents keep their data.">
    <${Loaded} of=${found}>${({ quarantined }) => quarantined.length === 0 ? html`<${Empty} title="No class is in quarantine" />`
      : html`<${Table} label="Quarantine" id=${(row) => row.class + row.sha256} rows=${quarantined} columns=${[
          { title: "Class", cell: (row) => row.class },
          { title: "Since", number: true, cell: (row) => html`<${Moment} ms=${row.since_ms} />` },
          { title: "In the call", cell: (row) => row.call },
          { title: "Reason", wide: true, cell: (row) => row.reason },
          { title: "What to do", cell: (row) => html`<${Change} label="Serve again" name=${`Serve ${row.class} again`} confirm="It may crash the server again." run=${() => ask("POST", "/admin/quarantine/release", { class: row.class }).then(found.again)} />` },
        ]} />`}<//>
  <//>`;
}

export const Waits = () => html`<h1>Waits for you</h1><${Stuck} /><${Unknown} /><${Quarantine} />`;
