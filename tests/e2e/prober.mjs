// On a thread of its own: calls agents in turn, from "begin" to "end", and tells how long calls
// took, in ms: one each ms, also those that would have begun while another one waited.

import { once } from "node:events";
import { parentPort, workerData } from "node:worker_threads";

import WebSocket from "ws";

const sockets = Array.from({ length: 8 }, (_, i) => new WebSocket(`ws://${workerData.host}/agents/assistant/probed-${i}`));
const opened = Promise.all(sockets.map((socket) => once(socket, "open")));
let times; // undefined: nothing is measured

async function call(socket) {
  const answered = new Promise((resolve) => {
    socket.on("message", function look(data) {
      if (!data.includes('"rpc"')) return;
      socket.off("message", look);
      resolve();
    });
  });
  const begun = performance.now();
  socket.send('{"type":"rpc","id":"1","method":"none","args":[]}');
  await answered;
  return performance.now() - begun;
}

async function probe(taken) {
  await opened;
  for (let i = 0; times === taken; ++i) {
    for (let left = await call(sockets[i % sockets.length]); left > 0; left -= 1) taken.push(left);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

parentPort.on("message", (what) => {
  if (what === "begin") {
    times = [];
    void probe(times);
  } else {
    parentPort.postMessage(times);
    times = undefined;
  }
});
