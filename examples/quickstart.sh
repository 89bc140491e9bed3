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
build/headwise train --tokenizer word --layers 2 --heads 8 --width 128 --context 64 --batch 12 --steps 3500 --lr 4e-3 \
  --schedule linear --min-lr 0 --no-tie --init-std 0.08 --eval-every 500 --out "$run"
echo
build/headwise sample "$run" --samples 3 --tokens 120 --top-p 0.9
echo
build/headwise study "$run" --out "$run/heads.html"
cat <<TEXT

The run is in $run, what its heads do in $run/heads.html: open it in a browser. What to try next:
  build/headwise sample $run --prompt "The boats near the tree"
  build/headwise data stories --show 2         who is whose subject, who is "she", which bank
  build/headwise train --task copy             learns to copy 20 letters
  build/headwise info $run                     its parameters, by name
  build/headwise gradcheck                     proves every gradient
  build/headwise train --data YOUR.txt         trains on your own text
TEXT
