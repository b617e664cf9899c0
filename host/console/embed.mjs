// Writes the console's page and its packages, gzipped, as a C++ source, and the packages' licences:
//
//   node embed.mjs PAGE NODE_MODULES OUTPUT NOTICES
//
// Browsers load the modules as they are. Only the names of packages become paths, because an import
// map would have to stand in the page, where its policy allows no script.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";

const [page, modules, output, notices] = process.argv.slice(2);

const packages = {
  preact: { path: "preact.js", file: "preact/dist/preact.module.js" },
  "preact/hooks": { path: "hooks.js", file: "preact/hooks/dist/hooks.module.js" },
  htm: { path: "htm.js", file: "htm/dist/htm.mjs" },
  // Of uPlot only this form is minified.
  uplot: { path: "uplot.js", file: "uplot/dist/uPlot.iife.min.js", more: "\nexport default uPlot;\n" },
};

const withPaths = (text) =>
  text.replace(/(\bfrom\s*|\bimport\s*)"([\w/]+)"/g, (all, word, name) =>
    packages[name] ? `${word}"/console/${packages[name].path}"` : all,
  );
const withoutMap = (text) => text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
// Comments and indents are for readers of the source.
const shortened = (text) => text.replace(/^\s*\/\/.*\n/gm, "").replace(/^[ \n]+/gm, "");

const files = readdirSync(page)
  .sort()
  .map((name) => ({ path: name, text: withPaths(shortened(readFileSync(path.join(page, name), "utf8"))) }));
for (const each of Object.values(packages)) {
  const text = readFileSync(path.join(modules, each.file), "utf8");
  files.push({ path: each.path, text: withPaths(withoutMap(text)) + (each.more ?? "") });
}

const names = ["preact", "htm", "uplot"];
writeFileSync(notices, names.map((name) => `${name}\n\n${readFileSync(path.join(modules, name, "LICENSE"), "utf8")}`).join("\n\n"));

const literal = (bytes) => `"${Array.from(bytes, (byte) => "\\" + byte.toString(8).padStart(3, "0")).join("")}"`;
const entries = files.map(({ path: name, text }) => {
  // Which is the smallest depends on the text.
  const [bytes] = [7, 8, 9].map((memLevel) => gzipSync(text, { level: 9, memLevel })).sort((a, b) => a.length - b.length);
  return `    {"${name}", std::string_view(${literal(bytes)}, ${bytes.length})},\n`;
});
writeFileSync(
  output,
  `// Made by host/console/embed.mjs.
#include "api/console_pages.hpp"

namespace hearth::api {

std::span<const ConsoleFile> console_files() {
  static constexpr ConsoleFile kFiles[] = {
${entries.join("")}  };
  return kFiles;
}

}  // namespace hearth::api
`,
);
