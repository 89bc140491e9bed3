#!/bin/sh
# Opens pages of `study` in a real browser:  sh tests/browser/run.sh MAKE_PAGE
# MAKE_PAGE is the program that writes pages from made-up documents. Needs node, Debian's chromium, and playwright-core
# in tests/browser/node_modules (npm ci --ignore-scripts there) or in $HEADWISE_BROWSER/node_modules. Where one of them is
# missing it skips, saying so (exit code 77); with HEADWISE_BROWSER set it fails instead, since then it is expected.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
lacking() {
  echo "the study page was not opened in a browser: no $1"
  [ -z "${HEADWISE_BROWSER:-}" ] || exit 1
  exit 77
}
command -v node >/dev/null || lacking node
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$chromium" ] || lacking chromium
modules=${HEADWISE_BROWSER:-$here}
[ -d "$modules/node_modules/playwright-core" ] || lacking "playwright-core in $modules/node_modules"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TMPDIR="$folder"  # what the browser leaves goes too
"$1" "$folder/hostile.html" 2 4 0
"$1" "$folder/small.html" 2 4 64
"$1" "$folder/bare.html" 2 2 bare
"$1" "$folder/middle.html" 6 6 256
"$1" "$folder/large.html" 12 12 512
CHROMIUM=$chromium MODULES=$modules PAGES=$folder node --test "$here/page.test.mjs"
