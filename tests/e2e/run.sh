#!/bin/sh
# Runs the end-to-end tests in a directory of the build, so that the source tree stays clean:
#
#   run.sh DIRECTORY HEARTH PLUGINS NEXT_RESEARCH LIBRARY...
#
#   DIRECTORY      to work in; made if absent
#   HEARTH         the server
#   PLUGINS        the directory of the bundled plugins
#   NEXT_RESEARCH  the next version of the plugin research
#   LIBRARY...     of the test agents
#
# HEARTH_E2E_ONLY is a pattern of test names; other tests do not run.
#
# The packages are installed once, and again whenever the lock file changes.
set -eu

source=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=$1
export HEARTH_BIN="$2" HEARTH_PLUGINS="$3" HEARTH_NEXT_RESEARCH="$4" HEARTH_TEST_PLUGINS="$work/plugins"

for tool in node npm; do
  command -v "$tool" > /dev/null || { echo "$tool is missing: apt-get install nodejs npm" >&2; exit 1; }
done
if [ -z "${HEARTH_SANITIZED:-}" ] && [ ! -x "${HEARTH_CHROMIUM:-/usr/bin/chromium}" ]; then
  echo "chromium is missing: apt-get install chromium, or name another in HEARTH_CHROMIUM" >&2
  exit 1
fi

# A fresh directory for the libraries: the build's directory also has libraries that are faulty on
# purpose.
mkdir -p "$work"
rm -rf "$work/plugins" "$work"/*.mjs
mkdir "$work/plugins"
shift 4
cp "$@" "$work/plugins/"
cp "$source"/*.mjs "$source/package.json" "$source/package-lock.json" "$source/.npmrc" "$work/"
# Five are left out with sanitizers. The transcript builds a library as its author does, which such
# a server cannot load. The two of the browser show nothing of the server that the other clients and
# the tests of the chat do not show. The frames of chats measure time and memory. The clients of
# objects need a Node that is not installed then.
[ -z "${HEARTH_SANITIZED:-}" ] || (cd "$work" && rm transcript.test.mjs browser.test.mjs chat.test.mjs chat-frames.test.mjs objects.test.mjs)

cd "$work"
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
  npm ci --ignore-scripts --omit=optional --no-audit --no-fund
  cp package-lock.json node_modules/.installed-lock.json
fi
# Our own client, as `npm install` would put it there.
rm -rf node_modules/hearth-client
cp -R "$source/../../clients/js" node_modules/hearth-client
# The versions of Node for the printed clients, as npm packages. With sanitizers the clients run
# with one Node only, and without a browser.
if [ -z "${HEARTH_SANITIZED:-}" ]; then
  mkdir -p browser
  cp "$source"/browser/* "$source/.npmrc" browser/
  if ! cmp -s browser/package-lock.json browser/node_modules/.installed-lock.json; then
    (cd browser && npm ci --ignore-scripts --no-audit --no-fund)
    cp browser/package-lock.json browser/node_modules/.installed-lock.json
  fi
  mkdir -p nodes
  cp "$source/nodes/package.json" "$source/nodes/package-lock.json" "$source/.npmrc" nodes/
  if ! cmp -s nodes/package-lock.json nodes/node_modules/.installed-lock.json; then
    (cd nodes && npm ci --ignore-scripts --no-audit --no-fund)
    rm -rf nodes/node_modules/node-*/include nodes/node_modules/node-*/share  # two thirds of it
    cp nodes/package-lock.json nodes/node_modules/.installed-lock.json
  fi
  export HEARTH_NODES="$work/nodes/node_modules"
fi
exec node --test --test-concurrency=2 --test-reporter=spec ${HEARTH_E2E_ONLY:+"--test-name-pattern=$HEARTH_E2E_ONLY"} ./*.test.mjs
