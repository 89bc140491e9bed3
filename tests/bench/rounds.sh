# What compare.sh and threads.sh share: options, and runs recorded round by round. Not for running by itself.
# Reads --rounds N, --seconds S and --out FILE from the command line; the other words go to $rest.
# shellcheck shell=sh

rounds=5
seconds=5
out=
rest=
while [ $# -gt 0 ]; do
  case $1 in
    --rounds | --seconds | --out)
      [ $# -ge 2 ] || { echo "$1 needs a value" >&2; exit 2; }
      case $1 in
        --rounds) rounds=$2 ;;
        --seconds) seconds=$2 ;;
        --out) out=$(realpath "$2") ;;
      esac
      shift
      ;;
    *) rest="$rest $1" ;;
  esac
  shift
done

cd "$(dirname "$0")/../.." || exit
program=build/headwise
[ -x "$program" ] || {
  echo "$program is missing; build it with: cmake -S . -B build && cmake --build build" >&2
  exit 1
}

# settle: waits until plain products are within a tenth of the fastest seen so far, half a minute at most. Other
# work on the same cores, or two threads on one of them, would be measured instead of the program.
fastest=0
settle() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    rate=$("$program" bench train --config toy --seconds 0.2 --json | sed 's/.*"gemm_gflops":\([0-9]*\).*/\1/')
    [ "$rate" -le "$fastest" ] || fastest=$rate
    [ $((10 * rate)) -lt $((9 * fastest)) ] || return 0
    sleep 0.5
  done
  echo "the machine stays slow: $rate GFLOP/s, was $fastest" >&2
}

# record COMMAND ...: runs it on the settled machine and adds its JSON line, after the number of the round, to the
# results.
record() {
  settle
  echo "round $round of $rounds: $*" >&2
  line=$("$@")
  echo "$round $line" >>"$out"
}

# measure TITLE TABLE: calls one_round, which records, in each round; then prints the table of table.py.
measure() {
  : "${out:=$(mktemp -d)/rounds.jsonl}"
  {
    echo "# $(python3 tests/bench/machine.py)"
    echo "# $1; rounds: $rounds, $seconds s a run"
  } >"$out"
  round=1
  while [ "$round" -le "$rounds" ]; do
    one_round
    round=$((round + 1))
  done
  echo "results: $out" >&2
  python3 tests/bench/table.py "$2" "$out"
}
