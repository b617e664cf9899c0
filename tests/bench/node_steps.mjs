// The yardstick for steps: a minimal Node server that writes a checkpoint to SQLite at each step,
// and serves other requests between steps.
//
//   node node_steps.mjs FOLDER DATABASE SYNCHRONOUS    FOLDER has node_modules/better-sqlite3
//   GET /N                                             takes N steps, then answers
//
// A step that was taken survives the process, not a loss of power, as with Hearth's default. After
// a loss of power the database is sound with the value `NORMAL`, as Hearth's always is. With `OFF`
// it may be damaged.
import {createServer} from "node:http";
import {createRequire} from "node:module";
import {join, resolve} from "node:path";
import {setImmediate} from "node:timers/promises"; // setTimeout(0) would wait a millisecond

const [folder, file, synchronous] = process.argv.slice(2);
const Database = createRequire(join(resolve(folder), "package.json"))("better-sqlite3");
const database = new Database(file);
database.pragma("journal_mode = WAL");
database.pragma(`synchronous = ${synchronous}`);
database.exec("CREATE TABLE IF NOT EXISTS fibers (id TEXT PRIMARY KEY, name TEXT, snapshot TEXT, at INTEGER)");
database.prepare("INSERT OR REPLACE INTO fibers VALUES ('walk', 'walk', NULL, ?)").run(Date.now());
const stash = database.prepare("UPDATE fibers SET snapshot = ?, at = ? WHERE id = ?");

createServer(async (request, response) => {
  const steps = Number(request.url.slice(1));
  for (let done = 1; done <= steps; ++done) {
    stash.run(JSON.stringify({done, of: steps}), Date.now(), "walk");
    await setImmediate();
  }
  response.end(`${steps}`);
}).listen(0, "127.0.0.1", function () {
  console.log(`ready ${this.address().port}`);
});
