// The Node programs that run the clients in the documents: the system's Node, which runs the tests,
// and the packages that HEARTH_NODES has (nodes/package.json). Without HEARTH_NODES only the
// system's Node.

import { readdir } from "node:fs/promises";
import path from "node:path";

const packages = process.env.HEARTH_NODES;

// [{ name, program }]
export async function nodes() {
  const found = [{ name: `the Node of the system (${process.version})`, program: process.execPath }];
  if (packages === undefined) return found;
  const names = (await readdir(packages)).filter((name) => name.startsWith("node-")).sort();
  if (names.length !== VERSIONS) throw new Error(`${packages} has ${names.length} versions of Node, not ${VERSIONS}`);
  return found.concat(names.map((name) => ({ name, program: path.join(packages, name, "bin/node") })));
}

const VERSIONS = 3; // of nodes/package.json, for one kind of processor
