#!/bin/sh
# README's section "Attention, line by line" quotes a program: every quoted line must be in its output.
#   sh tests/readme_check.sh PROGRAM
set -eu
cd "$(dirname "$0")/.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$1" >"$said"
sed -n '/^## Attention, line by line/,/^## [^A]/p' README.md | grep '^    ' | sed 's/^    //' >"$said.quoted"
[ -s "$said.quoted" ] || { echo "README.md quotes nothing"; exit 1; }
bad=0
while IFS= read -r line; do
  grep -qxF -- "$line" "$said" || { echo "README.md quotes, but $1 does not print: $line"; bad=1; }
done <"$said.quoted"
rm -f "$said.quoted"
exit $bad
