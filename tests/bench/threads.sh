#!/bin/sh
# What a second thread brings to a training step: one thread and two, in turn, round by round.
#   sh tests/bench/threads.sh [--rounds N] [--seconds S] [--out FILE]
set -eu
# shellcheck source=tests/bench/rounds.sh
. "$(dirname "$0")/rounds.sh"
[ -z "$rest" ] || { echo "unknown:$rest; see $0" >&2; exit 2; }

one_round() {
  for config in char nano; do
    for threads in 1 2; do
      record "$program" bench train --config "$config" --seconds "$seconds" --threads "$threads" --json
    done
  done
}
measure "one thread and two" threads
