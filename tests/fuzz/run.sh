#!/bin/sh
# Fuzzes with libFuzzer and the address and undefined-behaviour sanitizers (clang 16):
#   sh tests/fuzz/run.sh [SECONDS [TARGET ...]]
# SECONDS for each target (default 60), two targets at a time; all of them by default. Inputs of up to 4 MB, 5 s and
# 2 GB each. Begins with the inputs of tests/fuzz/seeds and with large ones (large.py), and goes on with what an
# earlier call found, in FOLDER/corpus (BUILD=FOLDER, default build-fuzz). Prints each target's executions and how many
# edges of the code they covered. What crashes is written to FOLDER/found: mend it and keep it as a seed, which every
# build then replays.
set -eu
cd "$(dirname "$0")/../.."
folder=${BUILD:-build-fuzz}
seconds=${1:-60}
[ $# -eq 0 ] || shift
CXX=${CXX:-clang++-16} cmake -S . -B "$folder" -DHEADWISE_FUZZ=ON -DHEADWISE_BUILD_TESTS=ON -DHEADWISE_UNITY=ON >/dev/null
cmake --build "$folder" --target fuzz --parallel 2 >/dev/null
# shellcheck disable=SC2046  # names without spaces
[ $# -gt 0 ] || set -- $(ls tests/fuzz/seeds)

# one TARGET: fuzzes it, and prints one line.
one() {
  corpus=$folder/corpus/$1 found=$folder/found/$1 log=$folder/$1.log
  mkdir -p "$corpus" "$found"
  python3 tests/fuzz/large.py "$1" "$corpus"
  # What a message quotes may be of any length, so no dictionary; leaks are checked at the end.
  code=0
  OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 "$folder/tests/fuzz" --target="$1" -max_len=4194304 -timeout=5 \
    -rss_limit_mb=2048 -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$found/" \
    "$corpus" "tests/fuzz/seeds/$1" >"$log" 2>&1 || code=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
  slowest=$(sed -n 's/^stat::slowest_unit_time_sec: *//p' "$log")
  memory=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  echo "$1: ${executions:-?} executions, edges ${edges#cov: }, slowest ${slowest:-?} s, ${memory:-?} MB, $(
    [ $code = 0 ] && echo "no crash" || echo "CRASH: see $log")"
  return $code
}

failed=0
while [ $# -gt 0 ]; do
  one "$1" & first=$!
  shift
  if [ $# -gt 0 ]; then
    one "$1" & second=$!
    shift
    wait $second || failed=1
  fi
  wait $first || failed=1
done
exit $failed
