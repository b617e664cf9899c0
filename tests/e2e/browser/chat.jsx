// A page that shows one chat through useAgentChat. The query: ?agent=&name=&host=
//
// The test works with `window.chat`, what the hook has returned last, and reads `window.noted`:
// {turn} of onTurnEnd, {call} of onToolCall, and each {answer} that was shown last, in order.

import { Suspense, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";

const address = Object.fromEntries(new URLSearchParams(location.search));
window.noted = [];
window.sockets = { opens: 0, closes: 0 };

// Tools that this page carries out. `later` is answered by the test.
const locate = { description: "Where the user is.", parameters: { type: "object", properties: {} } };
const tools = { locate: { ...locate, execute: () => {} }, later: { ...locate, execute: () => {} } };

function shown(part) {
  if (part.type === "text") return part.text;
  if (part.type === "reasoning") return `(${part.text})`;
  if (!("toolCallId" in part)) return "";
  const name = part.toolName ?? part.type.replace(/^tool-/, "");
  return ` [${name} ${part.state} ${JSON.stringify(part.output ?? part.errorText ?? part.input)}] `;
}

// Of a message of a user the first line: a script for the model may follow.
function line({ role, parts }) {
  const text = parts.map(shown).join("").trim();
  return `${role}: ${role === "user" ? text.split("\n")[0] : text}`;
}

function Chat() {
  // The client's own first wait is tested elsewhere; here it would only cost time.
  const agent = useAgent({
    ...address,
    minReconnectionDelay: 100,
    maxReconnectionDelay: 500,
    onOpen: () => (window.sockets.opens += 1),
    onClose: () => (window.sockets.closes += 1),
  });
  const chat = useAgentChat({
    agent,
    tools,
    onTurnEnd: (turn) => window.noted.push({ turn }),
    onToolCall: ({ toolCall, addToolOutput }) => {
      const { toolCallId, toolName, input } = toolCall;
      window.noted.push({ call: { toolCallId, toolName, input } });
      if (toolName === "locate") addToolOutput({ toolCallId, output: { place: "Lisbon" } });
    },
  });
  window.chat = chat;
  const last = chat.messages.at(-1);
  const answer = last?.role === "assistant" ? line(last) : undefined;
  useEffect(() => {
    if (answer !== undefined) window.noted.push({ answer });
  }, [answer]);
  return (
    <main>
      <pre id="transcript">{chat.messages.map(line).join("\n")}</pre>
      <output id="status">{chat.status}</output>
      <output id="streaming">{String(chat.isStreaming)}</output>
      <output id="recovering">{String(chat.isRecovering)}</output>
      <output id="error">{chat.error?.message ?? ""}</output>
    </main>
  );
}

createRoot(document.getElementById("root")).render(
  <Suspense>
    <Chat />
  </Suspense>,
);
