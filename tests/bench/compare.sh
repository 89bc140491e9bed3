#!/bin/sh
# headwise beside PyTorch on this machine: the same work, in turn, round by round, as a Markdown table.
#   sh tests/bench/compare.sh [--rounds N] [--seconds S] [--out FILE] [--install] [CONFIG ...]
# CONFIG: toy nano char long gpt2 (a training step); mha512 mha1024 mha512x1 mhalong (attention alone).
# --install installs the Debian packages that are missing. THREADS in the environment: the cores if not set.
set -eu
# shellcheck source=tests/bench/rounds.sh
. "$(dirname "$0")/rounds.sh"
. examples/setup.sh

install=
configs=
for word in $rest; do
  case $word in
    --install) install=yes ;;
    toy | nano | char | long | gpt2 | mha512 | mha1024 | mha512x1 | mhalong) configs="$configs $word" ;;
    *) echo "'$word' is neither an option nor a configuration; see $0" >&2; exit 2 ;;
  esac
done
[ -n "$configs" ] || configs="toy nano char long gpt2 mha512 mha1024 mhalong"

packages="python3-torch libtorch-dev libopenblas0-openmp"
if [ -n "$install" ]; then
  # shellcheck disable=SC2086  # a list of words
  install_packages $packages >&2
else
  # shellcheck disable=SC2086
  absent=$(missing_packages $packages)
  [ -z "$absent" ] || { echo "Missing:$absent. Add --install to install what is missing." >&2; exit 1; }
fi

export OMP_NUM_THREADS="${THREADS:-$(nproc)}"
peers=tests/bench/peers
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# peer COMMAND ...: PyTorch with the BLAS that is fastest for it, choosing its kernels by itself.
peer() (
  unset OPENBLAS_CORETYPE
  LD_LIBRARY_PATH=/usr/lib/$(gcc -print-multiarch)/openblas-openmp
  export LD_LIBRARY_PATH
  exec "$@"
)

# run CONFIG: once ours, then each peer that has this configuration.
run() {
  options="--config $1 --seconds $seconds --threads $OMP_NUM_THREADS"
  case $1 in
    mha*) what=attention script=torch_mha.py ;;
    *) what=train script=torch_gpt.py ;;
  esac
  # shellcheck disable=SC2086  # a list of words
  record "$program" bench $what $options --json
  # shellcheck disable=SC2086
  record peer /usr/bin/python3 $peers/$script $options
  case $1 in
    toy | nano | char) record peer "$folder/libtorch_gpt" "$1" "$OMP_NUM_THREADS" "$seconds" ;;
  esac
}

case $configs in
  *toy* | *nano* | *char*)
    echo "building the libtorch peer" >&2
    g++ -O2 $peers/libtorch_gpt.cpp -o "$folder/libtorch_gpt" \
      -I/usr/include/torch/csrc/api/include -ltorch -ltorch_cpu -lc10
    ;;
esac

one_round() {
  for config in $configs; do run "$config"; done
}
measure "headwise and PyTorch, $OMP_NUM_THREADS threads" compare
