// The yardstick for recovery: a Node server with a SQLite file for each agent, and one fiber in
// each. At its start it opens them all, counts a try of each fiber, and goes on with it.
//
//   node node_recovery.mjs FOLDER HOME AGENTS    FOLDER has node_modules/better-sqlite3
//
// A fiber adds a byte to HOME/running, as that of tests/agents/steps_agent.cpp does, and sleeps.
import {appendFileSync, mkdirSync} from "node:fs";
import {createServer} from "node:http";
import {createRequire} from "node:module";
import {join, resolve} from "node:path";

const [folder, home, agents] = process.argv.slice(2);
const Database = createRequire(join(resolve(folder), "package.json"))("better-sqlite3");
mkdirSync(join(home, "data"), {recursive: true});
const live = [];

function rest(database) {
  database.prepare("UPDATE fibers SET snapshot = ?, at = ? WHERE id = 'rest'").run(JSON.stringify({since: Date.now()}), Date.now());
  appendFileSync(join(home, "running"), ".");
  setTimeout(() => {}, 3_600_000);
}

createServer((request, response) => response.end()).listen(0, "127.0.0.1", function () {
  console.log(`ready ${this.address().port}`);
  for (let agent = 0; agent < Number(agents); ++agent) {
    const database = new Database(join(home, "data", `${agent}.db`));
    database.pragma("journal_mode = WAL");
    database.pragma("synchronous = NORMAL");
    database.exec("CREATE TABLE IF NOT EXISTS fibers (id TEXT PRIMARY KEY, tries INTEGER, snapshot TEXT, at INTEGER)");
    database.prepare("INSERT INTO fibers VALUES ('rest', 1, NULL, ?) ON CONFLICT (id) DO UPDATE SET tries = tries + 1").run(Date.now());
    live.push(database);
    rest(database);
  }
});
