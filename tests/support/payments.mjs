// A provider of payments that counts its effects, and may fail in the middle of one. Used by
// provider.mjs.
//
//   POST /KEYS/charges, /KEYS/refunds {"order"}   gives {"receipt"}. KEYS is the effect of an
//                     Idempotency-Key: `honoured` (one effect for each key), `listed` (GET with the
//                     key gives the receipt, or 404) or `ignored`
//   POST /hook {"order", "event"}                 a receiver of webhooks
//   GET /fault?path=/charges&order=7&do=kill-after&pid=99   the fault of the next such request:
//                     kill-before, kill-after   the process `pid` is killed before or after the
//                                               effect
//                     cut-before, cut-after     the same, and the connection is cut
//                     kill-late, cut-late       the effect takes place after the next answer that
//                                               the key is not listed, or before the next POST with
//                                               the key or GET /books
//                     refused                   402
//                     slow                      prints "slow 7", and answers after GET /go-on
//   GET /books        {"/charges": {"7": effects}, ...}
const books = { '/charges': {}, '/refunds': {}, '/hook': {} };
const receipts = {};  // by path and key
const faults = {};  // by path and order
const slow = [];  // answers that wait
const late = {};  // effects that wait, by path and key
let answer;

async function act(request, response, keys, path) {
  const key = request.headers['idempotency-key'] ?? request.headers['webhook-id'];
  const name = keys + path + key;
  if (request.method === 'GET') {
    const known = receipts[name];
    answer(response, { receipt: known ?? '' }, known && keys === 'listed' ? 200 : 404);
    return land(name);
  }
  let body = '';
  for await (const piece of request) body += piece;
  const { order } = JSON.parse(body);
  const fault = faults[path + order] ?? {};
  delete faults[path + order];
  if (fault.do === 'refused') return answer(response, { error: 'refused' }, 402);
  if (fault.do?.endsWith('-before')) return fail(response, fault);
  const book = () => {
    books[path][order] = (books[path][order] ?? 0) + 1;
    receipts[name] = `${path.slice(1)} ${order}`;
  };
  land(name);
  if (fault.do?.endsWith('-late')) {
    late[name] = book;
    return fail(response, fault);
  }
  if (!(receipts[name] && keys === 'honoured')) book();
  if (fault.do?.endsWith('-after')) return fail(response, fault);
  const send = () => answer(response, { receipt: receipts[name] });
  if (fault.do !== 'slow') return send();
  slow.push(send);
  console.log(`slow ${order}`);
}

function land(name) {
  late[name]?.();
  delete late[name];
}

function fail(response, { do: what, pid }) {
  if (what.startsWith('kill')) process.kill(Number(pid), 'SIGKILL');
  if (what.startsWith('cut')) response.socket.destroy();
}

// `json` answers with a value and a status.
export function paymentPaths(json) {
  answer = json;
  const paths = {
    '/hook': (request, response) => act(request, response, 'ignored', '/hook'),
    '/books': (request, response) => {
      Object.keys(late).forEach(land);
      json(response, books);
    },
    '/fault': (request, response, query) => {
      const fault = Object.fromEntries(query);
      faults[fault.path + fault.order] = fault;
      json(response, fault);
    },
    '/go-on': (request, response) => {
      for (const send of slow.splice(0)) send();
      json(response, 'gone on');
    },
  };
  for (const keys of ['honoured', 'listed', 'ignored']) {
    for (const path of ['/charges', '/refunds']) {
      paths[`/${keys}${path}`] = (request, response) => act(request, response, keys, path);
    }
  }
  return paths;
}
