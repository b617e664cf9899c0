// A page that shows one agent through useAgent and calls the method in its form. The query:
// ?agent=&name=&host=, basePath= and token= if the server asks for them, and
// &sub=class/name/class/name... for an agent below it

import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "agents/react";

const { sub, token, ...address } = Object.fromEntries(new URLSearchParams(location.search));
if (sub) {
  const words = sub.split("/");
  address.sub = [];
  for (let at = 0; at < words.length; at += 2) address.sub.push({ agent: words[at], name: words[at + 1] });
}
const query = token === undefined ? undefined : { token };

function Agent() {
  const [state, setState] = useState("");
  const [answer, setAnswer] = useState("");
  const [parts, setParts] = useState([]);
  const [counts, setCounts] = useState({ opens: 0, closes: 0 });
  const [code, setCode] = useState("");
  const count = (what) => setCounts((before) => ({ ...before, [what]: before[what] + 1 }));

  const agent = useAgent({
    ...address,
    query,
    onStateUpdate: (next, source) => setState(`${JSON.stringify(next)} by the ${source}`),
    onStateUpdateError: (error) => setAnswer(error),
    onOpen: () => count("opens"),
    onClose: (event) => {
      count("closes");
      setCode(event.code);
    },
  });

  const call = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setParts([]);
    setAnswer("");
    try {
      const onChunk = (part) => setParts((before) => [...before, part]);
      const how = form.get("stream") ? { stream: { onChunk } } : {};
      setAnswer(JSON.stringify(await agent.call(form.get("method"), JSON.parse(form.get("args")), how)));
    } catch (error) {
      setAnswer(`failed: ${error.message}`);
    }
  };
  const write = (event) => {
    event.preventDefault();
    agent.setState(JSON.parse(new FormData(event.currentTarget).get("state")));
  };

  return (
    <main>
      <output id="identity">{agent.identified ? `${agent.agent}/${agent.name}` : "unknown"}</output>
      <output id="state">{state}</output>
      <output id="opens">{counts.opens}</output>
      <output id="closes">{counts.closes}</output>
      <output id="code">{code}</output>
      <form id="call" onSubmit={call}>
        <input name="method" />
        <input name="args" />
        <input name="stream" type="checkbox" />
        <button>call</button>
      </form>
      <form id="write" onSubmit={write}>
        <input name="state" />
        <button>set the state</button>
      </form>
      <output id="answer">{answer}</output>
      <output id="parts">{parts.join(" ")}</output>
    </main>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Agent />
  </StrictMode>,
);
