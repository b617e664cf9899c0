// A server that asks for JSON Web Tokens, and the tokens.

import { createHmac, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";

import { bundledPlugins } from "./server.mjs";

const secret = randomBytes(32);

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

// For the agent that is called as the user is.
export function tokenFor(user, seconds = 300) {
  const exp = Math.floor(Date.now() / 1000) + seconds;
  const text = `${encoded({ alg: "HS256" })}.${encoded({ iss: "test", aud: "hearth", sub: user, exp })}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

// What startServer() takes. `origin`: of the pages that may read answers.
export async function guardedConfig(root, origin) {
  await writeFile(path.join(root, "keys.json"), JSON.stringify({ kty: "oct", k: secret.toString("base64url") }));
  const config = `
routes:
  - prefix: /api/agents
  - {prefix: /custom-state, agent: counter}
  - {path: /user, agent: counter, name: "{sub}"}
  - {path: /nothing, status: 410}
auth:
  type: jwt
  name: "{sub}"
  keys_file: keys.json
  issuer: test
  audience: [hearth]
  clock_skew: 0s
cors:
  origins: ["${origin}"]
`;
  return { plugins: [bundledPlugins], config };
}
