#!/bin/sh
# Installs what is missing, builds headwise, trains a small model for about a minute, and shows what it
# writes.   sh examples/quickstart.sh [--build-only]
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh

case "${1:-}" in
  "" | --build-only) ;;
  *) echo "usage: sh examples/quickstart.sh [--build-only]" >&2; exit 2 ;;
esac

# shellcheck disable=SC2086  # a list of words
install_packages $build_packages
[ -f build/CMakeCache.txt ] || set_up=-DHEADWISE_BUILD_TESTS=OFF
build build ${set_up:-}
if [ "${1:-}" = --build-only ]; then
  echo "Built build/headwise; try build/headwise --help"
  exit 0
fi

run=1
while [ -e "runs/quickstart-$run" ]; do run=$((run + 1)); done
run=runs/quickstart-$run
echo
build/headwise train --layers 3 --heads 4 --width 128 --context 96 --batch 12 --steps 1400 --lr 3e-3 --eval-every 200 --out "$run"
echo
build/headwise sample "$run" --samples 3 --tokens 160 --temperature 0.8
cat <<TEXT

The run is in $run. What to try next:
  build/headwise sample $run --prompt "The boats near the bank"
  build/headwise info $run                     its parameters, by name
  build/headwise gradcheck                     proves every gradient
  build/headwise train --data YOUR.txt         trains on your own text
TEXT
