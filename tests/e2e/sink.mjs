// On a thread of its own: a server of WebSockets that drops what it gets, and answers each message
// of a chat with its end.

import { once } from "node:events";
import { parentPort } from "node:worker_threads";

import { WebSocketServer } from "ws";

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
server.on("connection", (socket) =>
  socket.on("message", (data) => {
    const end = data.length < 1_000 && { ...JSON.parse(data), type: "cf_agent_use_chat_response", body: "", done: true };
    if (end) socket.send(JSON.stringify(end));
  }),
);
await once(server, "listening");
parentPort.postMessage(`127.0.0.1:${server.address().port}`);
