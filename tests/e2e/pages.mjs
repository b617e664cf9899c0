// Pages of browser/, built and served from another port of this machine, as by a development
// server; and the browser that shows them.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

// They have their own packages: browser/package.json.
const directory = fileURLToPath(new URL("browser/", import.meta.url));
const require = createRequire(path.join(directory, "package.json"));
const { build } = require("esbuild");
const { chromium } = require("playwright-core");

// In the place of the newest: the version of `ai` before.
export const previousAi = {
  "@ai-sdk/react": "ai-sdk-react-3",
  ai: path.join(directory, "node_modules/ai-sdk-react-3/node_modules/ai"),
};

async function bundled(page, alias) {
  const { outputFiles } = await build({
    absWorkingDir: directory,
    entryPoints: [page],
    bundle: true,
    format: "esm",
    jsx: "automatic",
    minify: true,
    alias,
    write: false,
  });
  return Buffer.from(outputFiles[0].contents);
}

// The listening server of one page. `alias`: packages that take the place of others.
export async function servePage(page, alias = {}) {
  const script = await bundled(page, alias);
  const listening = createServer((request, response) => {
    const isScript = request.url.startsWith("/page.js");
    response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : '<div id="root"></div><script type="module" src="/page.js"></script>');
  });
  await new Promise((resolve) => listening.listen(0, "127.0.0.1", resolve));
  return listening;
}

export const originOf = (listening) => `http://127.0.0.1:${listening.address().port}`;

export function launchBrowser() {
  return chromium.launch({ executablePath: process.env.HEARTH_CHROMIUM ?? "/usr/bin/chromium" });
}
