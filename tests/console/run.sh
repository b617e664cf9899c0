#!/bin/sh
# Runs the tests of the console in a directory of the build:
#
#   run.sh DIRECTORY HEARTH PLUGINS TEST_PLUGINS
#
#   DIRECTORY     to work in; made if absent. Screenshots are left in DIRECTORY/screenshots
#   HEARTH        the server
#   PLUGINS       the directory of the bundled plugins
#   TEST_PLUGINS  that of the plugins for tests
#
# HEARTH_E2E_ONLY is a pattern of test names; other tests do not run.
set -eu

source=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=$1
export HEARTH_BIN="$2" HEARTH_PLUGINS="$3" HEARTH_TEST_PLUGINS="$4" HEARTH_SOURCES="$source/../.."

if [ ! -x "${HEARTH_CHROMIUM:-/usr/bin/chromium}" ]; then
  echo "chromium is missing: apt-get install chromium, or name another in HEARTH_CHROMIUM" >&2
  exit 1
fi
mkdir -p "$work"
rm -f "$work"/*.mjs
cp "$source"/*.mjs "$source/package.json" "$source/package-lock.json" "$source/.npmrc" "$source/../e2e/server.mjs" "$work/"
cd "$work"
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
  npm ci --ignore-scripts --no-audit --no-fund
  cp package-lock.json node_modules/.installed-lock.json
fi
exec node --test --test-reporter=spec ${HEARTH_E2E_ONLY:+"--test-name-pattern=$HEARTH_E2E_ONLY"} ./*.test.mjs
