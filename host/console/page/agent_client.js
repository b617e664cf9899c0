// An agent as its clients see it: its state as it changes, and its methods.

import { useEffect, useRef, useState } from "preact/hooks";
import { usePolled, typed } from "./api.js";
import { Code, Empty, Field, Loaded, Mistake, Section, Waiting, html, pretty } from "./ui.js";
import { AgentSocket, socketPath } from "./socket.js";

const MOST_CHUNKS = 200;

// ---- arguments from a schema ----

function typeOf(schema) {
  if (typeof schema.type === "string") return schema.type;
  const types = schema.type ?? (schema.anyOf ?? []).map(typeOf);
  return types.length ? types.join(" or ") : "any";
}

// What a person has typed, as a value. A text needs no quotes where only a text may be.
export function valueOf(text, schema) {
  if (typeOf(schema) === "string") return text;
  try {
    return typed(text);
  } catch (error) {
    if (error.name !== "SyntaxError") throw error;
    if (typeOf(schema).includes("string") || typeOf(schema) === "any") return text;
    throw new Error(`“${text}” is not JSON: expected ${typeOf(schema)}`);
  }
}

function argumentsOf(method, texts) {
  const schemas = method.arguments?.prefixItems ?? [];
  let last = texts.length;
  while (last > (method.arguments?.minItems ?? 0) && (texts[last - 1] ?? "") === "") last -= 1;
  return schemas.slice(0, last).map((schema, index) => valueOf(texts[index] ?? "", schema));
}

function Method({ method, socket }) {
  const [texts, setTexts] = useState([]);
  const [outcome, setOutcome] = useState({ runs: false });
  const schemas = method.arguments?.prefixItems ?? [];
  const least = method.arguments?.minItems ?? 0;
  const call = async (event) => {
    event.preventDefault();
    const chunks = [];
    setOutcome({ runs: true, chunks });
    try {
      const result = await socket.call(method.name, argumentsOf(method, texts), (chunk) => {
        chunks.push(chunk);
        setOutcome({ runs: true, chunks: chunks.slice(-MOST_CHUNKS) });
      });
      setOutcome({ runs: false, chunks: chunks.slice(-MOST_CHUNKS), result, has: true });
    } catch (error) {
      setOutcome({ runs: false, chunks: chunks.slice(-MOST_CHUNKS), error });
    }
  };
  const words = ["read_only", "idempotent", "streaming", "exclusive"].filter((each) => method[each]).map((each) => each.replace("_", " "));
  return html`<li class="method">
    <form onSubmit=${call} aria-label=${`Call ${method.name}`}>
      <p class="method-head"><code>${method.name}</code> <span class="quiet">${method.description}${words.length > 0 && ` (${words.join(", ")})`}</span></p>
      <div class="filters">
        ${schemas.map((schema, index) => html`<${Field} label=${`${index + 1}: ${typeOf(schema)}${index < least ? "" : ", optional"}`}>
          <input value=${texts[index] ?? ""} spellcheck=${false} autocomplete="off" onInput=${(event) => setTexts(Object.assign([...texts], { [index]: event.target.value }))} />
        <//>`)}
        <button class="button" disabled=${outcome.runs}>${outcome.runs ? "Runs …" : "Call"}</button>
      </div>
    </form>
    ${outcome.chunks?.length > 0 && html`<${Code} label=${`Parts of ${method.name}`} value=${outcome.chunks.map((each) => JSON.stringify(each)).join("\n")} />`}
    ${outcome.has && html`<${Code} label=${`Result of ${method.name}`} value=${outcome.result === undefined ? "done, without a result" : pretty(outcome.result)} />`}
    <${Mistake} error=${outcome.error} />
  </li>`;
}

// ---- the connection ----

export function useSocket(path, token, onFrame) {
  const [state, setState] = useState({ word: "connecting" });
  const socket = useRef(null);
  const handler = useRef(onFrame);
  handler.current = onFrame;
  useEffect(() => {
    if (path === null) return undefined;
    const made = new AgentSocket(path, token, {
      onState: (word, why, final) => setState({ word, why, final }),
      onFrame: (frame) => handler.current(frame, made),
    });
    socket.current = made;
    return () => made.close();
  }, [path, token]);
  return [socket, state];
}

// Asks before it connects, as a client wakes its agent.
export function Connect({ onConnect, what }) {
  const [token, setToken] = useState("");
  return html`<form class="filters" onSubmit=${(event) => { event.preventDefault(); onConnect(token); }}>
    <${Field} label="A client's token, if the class asks for one"><input type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} /><//>
    <button class="button primary">Connect as a client</button>
    <span class="quiet">${what}</span>
  </form>`;
}

function Connected({ path, token, methods, back }) {
  const [state, setState] = useState({ has: false });
  const [socket, link] = useSocket(path, token, (frame) => {
    if (frame.type === "cf_agent_state") setState({ has: true, value: frame.state, at: Date.now() });
  });
  if (link.word === "closed" && link.why) return html`<${Mistake} error=${link.why} />${link.final && html`<button class="button" onClick=${back}>Try again</button>`}`;
  return html`
    <${Section} title="State" note=${link.word === "open" ? "live" : "connecting …"}>
      ${state.has ? html`<${Code} label="State" value=${state.value === undefined ? "removed" : pretty(state.value)} />` : html`<p class="quiet">This agent has told no state.</p>`}
    <//>
    <${Section} title="Methods">
      <${Loaded} of=${methods}>${(data) => data.methods.length === 0 ? html`<${Empty} title="The class lists no methods" />`
        : html`<ul class="methods">${data.methods.map((method) => html`<${Method} key=${method.name} method=${method} socket=${{ call: (...call) => socket.current.call(...call) }} />`)}</ul>`}<//>
    <//>
  `;
}

export function Client({ agentClass, name, classes }) {
  const [token, setToken] = useState(null);
  const methods = usePolled(`/admin/classes/${encodeURIComponent(agentClass)}/methods`, 10000);
  if (classes === null) return html`<${Waiting} />`;
  if (token === null) return html`<${Connect} onConnect=${setToken} what="This wakes the agent, and counts as one of its clients." />`;
  return html`<${Connected} path=${socketPath(agentClass, name, classes)} token=${token} methods=${methods} back=${() => setToken(null)} />`;
}
