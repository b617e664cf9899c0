// Plays a provider on 127.0.0.1: HTTP/1.1 in the clear, HTTP/1.1 and 2 over TLS, and a port that
// takes connections and never reads. Prints the ports as one line of JSON, then a line for each
// request of a chat ("chat KEY"), /stall and /never, when it comes. Ends with its parent.
//
//   node provider.mjs CERTIFICATE.pem KEY.pem
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import zlib from 'node:zlib';

import { paymentPaths } from './payments.mjs';

const [certificate, key] = process.argv.slice(2).map((path) => fs.readFileSync(path));
const stats = { http: 0, https: 0, silent: 0, open: 0, cancelled: 0, streams: 0, requests: 0 };  // connections; open answers of /sse; all but /stats
const counts = {};  // requests of /v1/chat/completions by their key
let held = {};  // the chat whose answer is withheld, once: its key, and the part that comes
const traces = [];  // what /v1/traces has got
const charges = {};  // effects of /charges by their key
const late = {};  // effects of /charges that are under way, by their key
let killer = {};  // where /charges kills the asking server, and at which visit

async function text(request) {
  let body = '';
  for await (const piece of request) body += piece;
  return body;
}

function json(response, value, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

// Writes whenever there is room, until `next` has no more or the client is gone.
function pour(response, next) {
  const go = () => {
    for (let piece = next(); piece !== undefined; piece = next()) {
      if (!response.write(piece)) return response.once('drain', go);
    }
    response.end();
  };
  go();
}

// Writes each piece after a pause.
function drip(response, pieces, pause, end) {
  let at = 0;
  const timer = setInterval(() => {
    if (at < pieces.length) return response.write(pieces[at++]);
    clearInterval(timer);
    end();
  }, pause);
  response.on('close', () => clearInterval(timer));
}

function cut(response, bytes) {
  if (response.stream) return response.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  response.socket.write(bytes, () => response.socket.destroy());
}

function chunk(id, delta, finish = null) {
  return { id, object: 'chat.completion.chunk', model: 'test', choices: [{ index: 0, delta, finish_reason: finish }] };
}

async function complete(request, response) {
  const asked = JSON.parse(await text(request));
  const name = request.headers['idempotency-key'] ?? request.headers['x-run'] ?? '';
  counts[name] = (counts[name] ?? 0) + 1;
  const part = held.key === name ? held.part : 'all';
  if (part !== 'all') held = {};
  console.log(`chat ${name}`);
  if (part === 'none') return;
  const last = asked.messages.at(-1).content;
  const words = `You said: ${last}`.match(/\S+\s*/g);
  const id = `chatcmpl-${name || 'none'}`;
  if (!asked.stream) {
    const message = { role: 'assistant', content: words.join('') };
    return json(response, { id, object: 'chat.completion', model: 'test', choices: [{ index: 0, message, finish_reason: 'stop' }] });
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const deltas = [{ role: 'assistant', content: '' }, ...words.map((content) => ({ content }))];
  const events = deltas.map((delta) => chunk(id, delta)).concat(chunk(id, {}, 'stop'));
  const pieces = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).concat('data: [DONE]\n\n');
  if (part === 'some') return drip(response, pieces.slice(0, 2), 1, () => {});
  drip(response, pieces, Number(request.headers['x-every-ms'] ?? 1), () => response.end());
}

// Whether the server that asks was killed here.
function kills(request, place) {
  const pid = Number(request.headers['x-server-pid']);
  if (killer.at !== place || (killer.pid ?? pid) !== pid || --killer.visit > 0) return false;
  killer = {};
  process.kill(pid, 'SIGKILL');
  return true;
}

function land(key) {
  late[key]?.();
  delete late[key];
}

// Charges once for each key (?once), or for each request. GET: whether it was done. After the
// answer "no", a late effect takes place.
async function charge(request, response, query) {
  const key = request.headers['idempotency-key'];
  if (request.method === 'GET') {
    json(response, { receipt: key }, charges[key] ? 200 : 404);
    return land(key);
  }
  await text(request);
  land(key);
  const act = () => { if (!query.has('once') || !charges[key]) charges[key] = (charges[key] ?? 0) + 1; };
  if (kills(request, 'received')) return;
  if (kills(request, 'late')) {
    late[key] = act;
    return;
  }
  act();
  if (!kills(request, 'acted')) json(response, { receipt: key });
}

// A poem of ten lines, each an event. A POST writes one, which counts as an effect: one for each
// key (?once), or for each request. GET gets the lines behind Last-Event-ID. The first request
// after /kill?at=stall gets only three lines, and no end.
async function poem(request, response, query) {
  const key = request.headers['idempotency-key'];
  const lines = Array.from({ length: 10 }, (_, at) => `id: ${at}\ndata: line ${at}\n\n`);
  if (request.method === 'GET') {
    if (!charges[key]) return json(response, {}, 404);
    const last = request.headers['last-event-id'];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    return recite(response, lines.slice(last === undefined ? 0 : Number(last) + 1));
  }
  await text(request);
  if (kills(request, 'received')) return;
  if (!charges[key] || !query.has('once')) charges[key] = (charges[key] ?? 0) + 1;
  if (kills(request, 'acted')) return;
  response.writeHead(200, { 'content-type': 'text/event-stream', 'request-id': `poem-${key.slice(0, 8)}` });
  recite(response, lines);
}

function recite(response, lines) {
  if (killer.at !== 'stall') return response.end(lines.join(''));
  killer = {};
  response.flushHeaders();
  drip(response, lines.slice(0, 3), 1, () => {});
}

const paths = {
  '/echo': async (request, response) => json(response, {
    method: request.method, url: request.url, version: request.httpVersion, headers: request.headers, body: await text(request),
  }),
  '/stats': (request, response) => json(response, stats),
  '/counts': (request, response) => json(response, counts),
  '/v1/chat/completions': complete,
  // ?key=KEY&part=none or some: of the answer to the next streamed chat of that key.
  '/hold': (request, response, query) => {
    held = { key: query.get('key'), part: query.get('part') };
    json(response, held);
  },
  // A collector of traces, which refuses the first time. GET: what it has got.
  '/v1/traces': async (request, response) => {
    if (request.method === 'GET') return json(response, traces.slice(1));
    const { 'content-type': type, 'x-collector-key': key } = request.headers;
    traces.push({ type, key, ...JSON.parse(await text(request)) });
    if (traces.length > 1) return json(response, { partialSuccess: {} });
    response.writeHead(503, { 'retry-after': '0' });
    response.end();
  },
  '/charges': charge,
  '/poems': poem,
  '/charged': (request, response, query) => {  // ?reset: from now on
    Object.keys(late).forEach(land);
    if (query.has('reset')) for (const key of Object.keys(charges)) delete charges[key];
    json(response, charges);
  },
  // ?at=WHEN&visit=1[&pid=7]: the server that X-Server-Pid names is killed, once; with pid only if
  // it is that process. WHEN: received (before the effect), acted (after it, before the answer),
  // late (the effect takes place at the next request for the key, or with /charged).
  '/kill': (request, response, query) => {
    killer = { at: query.get('at'), visit: Number(query.get('visit') ?? 1) };
    if (query.has('pid')) killer.pid = Number(query.get('pid'));
    json(response, killer);
  },
  '/sse': (request, response, query) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    ++stats.streams;
    response.on('close', () => --stats.streams);
    const count = Number(query.get('events') ?? 3);
    const padding = 'x'.repeat(Number(query.get('bytes') ?? 0));
    const pieces = Array.from({ length: count }, (_, at) => `id: ${at}\ndata: event ${at}${padding}\n\n`);
    drip(response, pieces, Number(query.get('every_ms') ?? 1), () => response.end());
  },
  // Any status: ?code=429&retry_after=7
  '/status': (request, response, query) => {
    const after = query.get('retry_after');
    response.writeHead(Number(query.get('code')), after ? { 'retry-after': after } : {});
    response.end(`status ${query.get('code')}`);
  },
  // ?to=URL&code=302; without `to` to itself for ever.
  '/redirect': (request, response, query) => {
    response.writeHead(Number(query.get('code') ?? 302), { location: query.get('to') ?? request.url });
    response.end(query.get('body') ?? '');
  },
  '/bytes': (request, response, query) => {
    let left = Number(query.get('n'));
    response.writeHead(200, { 'content-length': left });
    pour(response, () => {
      const size = Math.min(left, 65536);
      left -= size;
      return size > 0 ? Buffer.alloc(size, 'b') : undefined;
    });
  },
  '/endless': (request, response) => {
    response.writeHead(200);
    pour(response, () => Buffer.alloc(65536, 'e'));
  },
  '/gzip': (request, response, query) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end(zlib.gzipSync(query.get('text') ?? 'hello'));
  },
  // ?as=gzip (Content-Encoding)&made=gzip, deflate, raw or br&text=hello&members=1
  // &keep=BYTES of it (-1: all but one)&tail=bytes behind it. Its length is right.
  '/packed': (request, response, query) => {
    const pack = {
      gzip: zlib.gzipSync, deflate: zlib.deflateSync, raw: zlib.deflateRawSync, br: zlib.brotliCompressSync,
    }[query.get('made') ?? 'gzip'];
    const members = Array(Number(query.get('members') ?? 1)).fill(pack(query.get('text') ?? 'hello'));
    const whole = Buffer.concat([...members, Buffer.from(query.get('tail') ?? '')]);
    const body = whole.subarray(0, Number(query.get('keep') ?? whole.length));
    response.writeHead(200, { 'content-encoding': query.get('as') ?? 'gzip', 'content-length': body.length });
    response.end(body);
  },
  // ?mb=N zeros, some thousand times smaller on the wire.
  '/gzip-bomb': (request, response, query) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end(zlib.gzipSync(Buffer.alloc(Number(query.get('mb')) * 1048576)));
  },
  '/bad-gzip': (request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end('this is not compressed');
  },
  '/huge-headers': (request, response, query) => {
    const headers = {};
    for (let left = Number(query.get('bytes')), at = 0; left > 0; left -= 1024, ++at) headers[`x-${at}`] = 'h'.repeat(1000);
    response.writeHead(200, headers);
    response.end('huge');
  },
  '/early-hints': (request, response) => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' });
    response.end('after the hints');
  },
  '/slow-head': (request, response, query) => {
    setTimeout(() => response.end('slow'), Number(query.get('ms') ?? 100));
  },
  '/never': () => console.log('never'),
  // Head and a first piece, then nothing.
  '/stall': (request, response) => {
    response.write('first');
    console.log('stall');
  },
  '/cut-head': (request, response) => cut(response, 'HTTP/1.1 200 OK\r\ncontent-'),
  '/cut-before-head': (request, response) => cut(response, ''),
  // The next bytes are no HTTP, but look like the head that an agent gets.
  '/switch': (request, response) => cut(response, 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: own\r\n\r\n{"status":200,"url":"","headers":[]}'),
  '/transfer-gzip': (request, response) => cut(response, 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n'),
  '/garbage': (request, response) => cut(response, 'SSH-2.0-OpenSSH_9.2\r\n\r\n'),
  '/cut-body': (request, response) => {
    if (!response.stream) return cut(response, 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this');
    response.write('only this', () => cut(response));
  },
  // A body without a length, one event: ?version=1.1, ?gzip (and then empty).
  '/until-close': (request, response, query) => {
    const coding = query.has('gzip') ? 'content-encoding: gzip\r\n' : '';
    const body = coding ? '' : 'data: one\n\n';
    cut(response, `HTTP/${query.get('version') ?? '1.1'} 200 OK\r\n${coding}content-type: text/event-stream\r\n\r\n${body}`);
  },
  '/cut-chunk': (request, response) => cut(response, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\nonly this'),
  '/long-trailer': (request, response) =>
    cut(response, `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n${'a: b\r\n'.repeat(20_000)}`),
  // Says that the connection stays, and closes it.
  '/close-idle': (request, response) => {
    const { socket } = response;
    response.on('finish', () => socket.end());
    response.end('closed');
  },
  ...paymentPaths(json),
};

function answer(request, response) {
  const url = new URL(request.url, 'http://provider.test');
  response.on('error', () => {});
  response.on('close', () => { if (!response.writableFinished) ++stats.cancelled; });
  if (url.pathname !== '/stats') ++stats.requests;
  const path = paths[url.pathname];
  if (!path) return json(response, { error: 'no such path' }, 404);
  Promise.resolve(path(request, response, url.searchParams)).catch(() => response.destroy?.());
}

function counted(server, name) {
  server.on(name === 'https' ? 'secureConnection' : 'connection', (socket) => {
    ++stats[name];
    ++stats.open;
    socket.on('error', () => {});
    socket.on('close', () => --stats.open);
  });
  return server;
}

// A proxy: forwards requests with any host name to this server, and opens tunnels to its TLS port.
function forward(request, response) {
  const { pathname, search } = new URL(request.url);
  request.url = pathname + search;
  request.headers['x-proxied'] = request.headers['proxy-authorization'] ?? 'yes';
  answer(request, response);
}

const options = { keepAliveTimeout: 60000, requestTimeout: 0, maxHeaderSize: 1048576 };
const servers = {
  http: counted(http.createServer(options, answer), 'http'),
  https: counted(http2.createSecureServer({ ...options, allowHTTP1: true, cert: certificate, key }, answer), 'https'),
  silent: counted(net.createServer({ pauseOnConnect: true }), 'silent'),
  proxy: http.createServer(options, forward),
};
servers.proxy.on('connect', (request, socket) => {
  socket.on('error', () => {});
  if (request.url.startsWith('refused.test')) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  const upstream = net.connect(servers.https.address().port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connected\r\n\r\n');
    upstream.pipe(socket).pipe(upstream);
  });
  upstream.on('error', () => socket.destroy());
});
const ports = {};
for (const [name, server] of Object.entries(servers)) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', 4096, resolve));
  ports[name] = server.address().port;
}
console.log(JSON.stringify(ports));

const parent = process.ppid;
setInterval(() => { if (process.ppid !== parent) process.exit(); }, 1000);
