// The code that is served, and code on its way in.

import { useState } from "preact/hooks";
import { ask, usePolled } from "./api.js";
import { Badge, Change, Empty, Loaded, Section, Table, html } from "./ui.js";

const fileName = (path) => path.split("/").at(-1);

const OUTCOMES = {
  unchanged: "has not changed",
  new_version: "is coming in",
  new_settings: "has new settings, which are coming in",
  refused: "is refused",
  removed: "is gone",
};

function Looked({ files }) {
  if (files === null) return null;
  if (files.length === 0) return html`<p class="note" role="status">No library is there.</p>`;
  return html`<ul class="note" role="status">${files.map((each) => html`<li>${fileName(each.file)} ${OUTCOMES[each.outcome] ?? each.outcome}${each.version && ` (${each.version})`}${each.reason && `: ${each.reason}`}</li>`)}</ul>`;
}

export function Libraries() {
  const plugins = usePolled("/admin/plugins", 2000);
  const generations = usePolled("/admin/generations", 2000);
  const [files, setFiles] = useState(null);
  const order = async (what, body) => {
    setFiles((await ask("POST", `/admin/plugins/${what}`, body)).files);
    plugins.again();
    generations.again();
  };
  return html`
    <h1>Libraries</h1>
    <${Section} title="Versions in memory" actions=${html`<${Change} label="Look for new files" run=${() => order("reload")} />`}>
      <${Looked} files=${files} />
      <${Loaded} of=${generations}>${({ generations: all }) => all.length === 0 ? html`<${Empty} title="No library is served">Put a library into the plugins directory: it is served at once.<//>`
        : html`<${Table} label="Versions" id=${(row) => row.generation} rows=${all} columns=${[
            { title: "Library", cell: (row) => html`<span title=${row.file}>${row.plugin}</span>` },
            { title: "Version", cell: (row) => row.version },
            { title: "State", cell: (row) => html`<${Badge} word=${row.state} />${row.state === "on_trial" && html` <${Change} small label="Take back" confirm="Serve the version before again?" run=${() => order("take-back", { class: row.classes[0] })} />`}` },
            { title: "Generation", number: true, cell: (row) => row.generation },
            { title: "Classes", wide: true, cell: (row) => html`${row.classes.join(", ")}${row.pinned_because && html`<br /><span class="quiet">stays because ${row.pinned_because}</span>`}` },
            { title: "Content", cell: (row) => html`<code title=${row.sha256}>${row.sha256.slice(0, 12)}</code>` },
          ]} />`}<//>
    <//>
    <${Loaded} of=${plugins}>${({ refused, moving, settings }) => html`
      <${Section} title="Roll-out" note="Classes whose agents still move to another version or to other settings">
        ${moving.length === 0 ? html`<${Empty} title="All agents have the code that is served" />` : html`<p>${moving.map((each) => html`<span class="badge warn">${each}</span> `)}</p>`}
      <//>
      <${Section} title="Refused, and taken back">
        ${refused.length + settings.length === 0 ? html`<${Empty} title="Nothing is refused">A file that breaks a rule, or that crashes its agents, stands here with the reason.<//>`
          : html`<${Table} label="Refused" id=${(row) => row.what} rows=${[
              ...refused.map((each) => ({ what: fileName(each.file), state: "refused", reason: `${each.reason} (rule ${each.rule})` })),
              ...settings.map((each) => ({ what: `settings of ${each.class}`, state: each.state, reason: each.reason ?? "" })),
            ]} columns=${[
              { title: "What", cell: (row) => row.what },
              { title: "State", cell: (row) => html`<${Badge} word=${row.state} />` },
              { title: "Reason", wide: true, cell: (row) => row.reason },
            ]} />`}
      <//>
    `}<//>
  `;
}
