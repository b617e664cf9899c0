// A chat with any agent of a chat class.

import { useEffect, useRef, useState } from "preact/hooks";
import { agentLink, ask, nameInPath, parse, usePolledClasses } from "./api.js";
import { Badge, Code, Empty, Field, Loaded, Mistake, Waiting, html } from "./ui.js";
import { useSocket } from "./agent_client.js";
import { socketPath } from "./socket.js";
import { shownMessages, takeFrame } from "./chat.js";

const id = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16)).join("");

// ---- messages ----

const TOOL_STATES = {
  "input-streaming": ["good", "is being called"],
  "input-available": ["good", "runs"],
  "approval-requested": ["bad", "asks for approval"],
  "approval-responded": ["good", "was answered"],
  "output-available": ["good", "done"],
  "output-error": ["bad", "failed"],
  "output-denied": ["bad", "was denied"],
};

function Tool({ part, answer }) {
  const [look, text] = TOOL_STATES[part.state] ?? ["good", part.state];
  return html`<div class="tool">
    <p><code>${part.toolName ?? part.type.replace(/^tool-/, "")}</code> <span class=${`badge ${look}`}>${text}</span></p>
    ${part.input !== undefined && html`<${Code} label="Input of the tool" value=${part.input} />`}
    ${part.output !== undefined && html`<${Code} label="Output of the tool" value=${part.output} />`}
    ${part.errorText && html`<${Mistake} error=${part.errorText} />`}
    ${part.state === "approval-requested" && html`<p class="filters">
      <button class="button primary" onClick=${() => answer(part, true)}>Approve</button>
      <button class="button danger" onClick=${() => answer(part, false)}>Deny</button>
    </p>`}
  </div>`;
}

const Part = ({ part, answer }) => {
  if (part.type === "text") return html`<p class="said">${part.text}</p>`;
  if (part.type === "reasoning") return part.text ? html`<details class="quiet"><summary>Reasoning</summary><p class="said">${part.text}</p></details>` : null;
  if (part.toolCallId) return html`<${Tool} part=${part} answer=${answer} />`;
  return null;
};

const Message = ({ message, answer }) => html`<li class=${`message ${message.role}`}>
  <span class="who quiet">${message.role === "user" ? "You" : message.role === "assistant" ? "Agent" : message.role}</span>
  ${message.parts.map((part) => html`<${Part} part=${part} answer=${answer} />`)}
</li>`;

// ---- a chat ----

const NOTHING = { messages: [], live: null, turn: null, error: null, greeted: false };

function Chat({ path, token, agentClass, name }) {
  const [chat, setChat] = useState(NOTHING);
  const [text, setText] = useState("");
  const [socket, link] = useSocket(path, token, (frame, from) => setChat((before) => takeFrame(before, frame, (reply) => from.send(reply), parse)));
  const end = useRef(null);
  const shown = shownMessages(chat);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [shown.length, chat.live]);
  useEffect(() => {
    if (link.word === "open") socket.current.send({ type: "cf_agent_stream_resume_request" });
  }, [link.word]);
  const say = (event) => {
    event.preventDefault();
    if (text.trim() === "" || link.word !== "open") return;
    const message = { id: id(), role: "user", parts: [{ type: "text", text }] };
    const messages = [...chat.messages, message];
    const turn = id().slice(0, 8);
    socket.current.send({ type: "cf_agent_use_chat_request", id: turn, init: { method: "POST", body: JSON.stringify({ messages, trigger: "submit-message" }) } });
    setChat({ ...chat, messages, turn, error: null });
    setText("");
  };
  const answer = (part, approved) => {
    socket.current.send({ type: "cf_agent_tool_approval", toolCallId: part.toolCallId, approved, autoContinue: true });
    const answered = (message) => ({ ...message, parts: message.parts.map((each) => (each.toolCallId === part.toolCallId ? { ...each, state: "approval-responded" } : each)) });
    setChat((before) => ({ ...before, messages: before.messages.map(answered), live: before.live && answered(before.live) }));
  };
  return html`
    <p class="crumbs"><a href=${agentLink(agentClass, name)}>${agentClass}/${name}</a> <span class="quiet" role="status">${link.word === "open" ? "connected" : link.word}</span></p>
    ${link.why && html`<${Mistake} error=${link.why} />`}
    ${link.final && html`<p><a class="button" href="#/talk">Choose again, or give a token</a></p>`}
    ${shown.length === 0 ? html`<${Empty} title=${chat.greeted || link.word === "open" ? "Nothing was said yet" : "Connecting …"}>Write below. Enter sends, Shift and Enter make a new line.<//>`
      : html`<ol class="messages" aria-live="polite">${shown.map((message) => html`<${Message} key=${message.id} message=${message} answer=${answer} />`)}</ol>`}
    <${Mistake} error=${chat.error} />
    <div ref=${end}></div>
    <form class="say" onSubmit=${say}>
      <${Field} label="Your message"><textarea rows="2" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && say(event)}></textarea><//>
      ${chat.turn ? html`<button type="button" class="button" onClick=${() => socket.current.send({ type: "cf_agent_chat_request_cancel", id: chat.turn })}>Stop</button>`
        : html`<button class="button primary" disabled=${link.word !== "open"}>Send</button>`}
    </form>
  `;
}

// ---- which one ----

// The classes that list the methods of chats; null until they are known.
function useChatClasses(classes) {
  const [found, setFound] = useState(null);
  const names = classes?.map((each) => each.class).join(" ");
  useEffect(() => {
    if (!classes) return;
    const isChat = async ({ class: name }) => (await ask("GET", `/admin/classes/${encodeURIComponent(name)}/methods`)).methods.some((each) => each.name === "chat.start");
    Promise.all(classes.map((each) => isChat(each).catch(() => false))).then((are) => setFound(classes.filter((_, index) => are[index])));
  }, [names]);
  return found;
}

function Choose({ chats }) {
  const [agentClass, setClass] = useState(chats[0].class);
  const [name, setName] = useState("");
  const go = (event) => {
    event.preventDefault();
    if (name.trim()) location.hash = `#/talk/${encodeURIComponent(agentClass)}/${nameInPath(name.trim()).replaceAll("/", "%2F")}`;
  };
  return html`<form class="filters" onSubmit=${go}>
    <${Field} label="Class"><select value=${agentClass} onChange=${(event) => setClass(event.target.value)}>${chats.map((each) => html`<option>${each.class}</option>`)}</select><//>
    <${Field} label="Agent"><input data-search="" value=${name} placeholder="a name, known or new" spellcheck=${false} autocomplete="off" onInput=${(event) => setName(event.target.value)} /><//>
    <button class="button primary">Talk</button>
  </form>`;
}

export function Talk({ where }) {
  const seen = usePolledClasses();
  const classes = seen.data;
  const chats = useChatClasses(classes);
  const [token, setToken] = useState("");
  const [agentClass, ...rest] = where.rest;
  const name = rest.join("/");
  if (classes === null) return html`<h1>Talk</h1><${Loaded} of=${seen} />`;
  if (chats === null) return html`<h1>Talk</h1><${Waiting} />`;
  if (chats.length === 0) return html`<h1>Talk</h1><${Empty} title="No class here is a chat">A class of chats derives from <code>hearth::ChatAgent</code>. The library <code>assistant</code> has one that needs no code.<//>`;
  if (!name) return html`<h1>Talk</h1><${Choose} chats=${chats} /><details class="more"><summary>The class asks its clients for a token</summary>
    <${Field} label="Token of a client"><input type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} /><//></details>`;
  const known = decodeURIComponent(agentClass);
  return html`<h1>Talk</h1><${Chat} key=${where.rest.join("/")} path=${socketPath(known, name, classes)} token=${token} agentClass=${known} name=${name} />`;
}
