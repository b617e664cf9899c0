// What all places are made of.

import { Component, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import htm from "htm";

export const html = htm.bind(h);

// ---- texts ----

export const count = (number) => (number === null || number === undefined ? "–" : number.toLocaleString("en"));

export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const clock = (ms) => new Date(ms).toTimeString().slice(0, 8);

const MOST_MS = 8.64e15; // of a Date

// A moment: how long ago, or until when.
export function Moment({ ms, ahead = false }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  if (ms === null || ms === undefined || Math.abs(ms) > MOST_MS) return html`<span class="quiet">–</span>`;
  const text = ms > now + 500 ? `in ${span(ms - now)}` : ahead ? "now" : `${span(now - ms)} ago`;
  return html`<time class="number" datetime=${new Date(ms).toISOString()} title=${new Date(ms).toLocaleString()}>${text}</time>`;
}

// ---- pieces ----

const TONES = {
  good: ["live", "current", "completed", "none", "done", "running"],
  warn: ["long", "on_trial", "waking", "evicting", "interrupted", "draining", "pinned", "warn", "waiting", "paused"],
  bad: ["person", "unknown", "quarantined", "refused", "taken_back", "dead", "error", "failed"],
};
const WORDS = { person: "needs you", long: "long", none: "as it should be", on_trial: "on trial", taken_back: "taken back", not_executed: "not executed" };
export function Badge({ word }) {
  const tone = Object.keys(TONES).find((each) => TONES[each].includes(word)) ?? "plain";
  return html`<span class=${`badge ${tone}`}>${WORDS[word] ?? word}</span>`;
}

export const Empty = ({ title, children }) => html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;
export const Waiting = () => html`<p class="quiet waiting" role="status">Loading …</p>`;
export const Mistake = ({ error }) => error && html`<p class="mistake" role="alert">${error.message ?? String(error)}</p>`;

export const Section = ({ title, note, actions, children }) => html`<section class="section">
  <header class="section-head"><h2>${title}</h2>${note && html`<span class="quiet">${note}</span>`}<span class="space"></span>${actions}</header>
  ${children}
</section>`;

// `tabs`: {word, title}.
export const Tabs = ({ label, tabs, shown, to }) => html`<nav class="tabs" aria-label=${label}>${tabs.map((each) => html`<a href=${`${to}?tab=${each.word}`} aria-current=${each === shown ? "page" : undefined}>${each.title}</a>`)}</nav>`;

// `columns`: {title, cell(row), number, wide}. A table that is too wide scrolls by itself.
export function Table({ label, columns, rows, id }) {
  return html`<div class="table" tabindex="0" role="region" aria-label=${label}>
    <table>
      <thead><tr>${columns.map((each) => html`<th scope="col" class=${each.number ? "right" : ""}>${each.title}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${id(row)}>${columns.map((each) => html`<td class=${`${each.number ? "right number" : ""} ${each.wide ? "wide" : ""}`}>${each.cell(row)}</td>`)}</tr>`)}</tbody>
    </table>
  </div>`;
}

// Data, or why there are none yet.
export function Loaded({ of, children }) {
  // Of a server that is away the page says so already.
  if (of.data) return html`<${Mistake} error=${of.error?.status !== 0 ? of.error : null} />${children(of.data)}`;
  return of.error ? html`<${Mistake} error=${of.error} />` : html`<${Waiting} />`;
}

// A button for a change. `confirm`: a question that comes first. Shows what went wrong.
export function Change({ label, run, confirm, danger, disabled, name, small }) {
  const [state, setState] = useState({ asks: false, runs: false, error: null });
  const yes = useRef(null);
  useEffect(() => {
    if (state.asks) yes.current?.focus();
  }, [state.asks]);
  const go = async () => {
    setState({ asks: false, runs: true, error: null });
    try {
      await run();
      setState({ asks: false, runs: false, error: null });
    } catch (error) {
      setState({ asks: false, runs: false, error });
    }
  };
  const tone = `button ${danger ? "danger" : ""} ${small ? "small" : ""}`;
  if (state.asks)
    return html`<span class="confirm" role="group" aria-label=${confirm}>
      <span>${confirm}</span>
      <button class=${tone} ref=${yes} onClick=${go}>${label}</button>
      <button class="button" onClick=${() => setState({ asks: false, runs: false, error: null })}>Cancel</button>
    </span>`;
  return html`<span class="change">
    <button class=${tone} aria-label=${name} disabled=${disabled || state.runs} onClick=${confirm ? () => setState({ ...state, asks: true }) : go}>${state.runs ? "…" : label}</button>
    <${Mistake} error=${state.error} />
  </span>`;
}

export const Field = ({ label, children }) => html`<label class="field"><span>${label}</span>${children}</label>`;

// Fields of a filter {kind, ...}, named by their titles.
export const Choice = ({ title, words, filter, set }) => {
  const key = title.toLowerCase();
  return html`<${Field} label=${title}><select value=${filter[key]} onChange=${(event) => set({ ...filter, [key]: event.target.value })}>${words.map((each) => html`<option value=${each}>${each || "any"}</option>`)}</select><//>`;
};
export const Texts = ({ titles, filter, set }) => titles.map((title) => {
  const key = title.toLowerCase();
  return html`<${Field} label=${title}><input value=${filter[key]} onInput=${(event) => set({ ...filter, [key]: event.target.value })} placeholder="any" spellcheck=${false} /><//>`;
});

// The buttons of a paged list. `after`: of this page, "" for the first.
export const Pages = ({ after, next, set }) => (next || after) && html`<p class="pager">
  <button class="button" disabled=${!after} onClick=${() => set("")}>First</button>
  <button class="button" disabled=${!next} onClick=${() => set(next)}>Next</button>
</p>`;

export const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
export const Code = ({ value, label }) => html`<pre class="code" tabindex="0" aria-label=${label}>${pretty(value)}</pre>`;

// A command for the terminal, with a button that copies it.
export function Command({ text }) {
  const [word, setWord] = useState("Copy");
  const copy = async () => {
    // Absent without TLS, and refused if the person says so.
    const said = await navigator.clipboard?.writeText(text).then(() => "Copied", () => null);
    setWord(said ?? "Select it to copy");
    setTimeout(() => setWord("Copy"), 1500);
  };
  return html`<span class="command"><code>${text}</code><button class="button small" aria-label=${`Copy: ${text}`} onClick=${copy}>${word}</button></span>`;
}

// Whatever a place does wrong, the rest of the page stays.
export class Guard extends Component {
  constructor() {
    super();
    this.state = { error: null };
  }
  componentDidCatch(error) {
    this.setState({ error });
  }
  componentDidUpdate(before) {
    if (before.at !== this.props.at && this.state.error) this.setState({ error: null });
  }
  render() {
    if (!this.state.error) return this.props.children;
    return html`<${Empty} title="This place cannot be shown">
      ${String(this.state.error.message ?? this.state.error)}. <button class="button" onClick=${() => this.setState({ error: null })}>Try again</button>
    <//>`;
  }
}
