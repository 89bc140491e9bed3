#!/bin/sh
# Runs ctest under every set of OpenBLAS's kernels and every instruction set of ours that this machine has.
#   sh tests/kernels.sh [BUILD_FOLDER] [CTEST OPTION ...]
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build}
[ $# = 0 ] || shift

bad=
run() { # NAME VALUE [CTEST OPTION ...]: ctest with that in the environment
  setting=$1=$2
  shift 2
  echo "=== $setting"
  env "$setting" ctest --test-dir "$folder" --output-on-failure --parallel "$(nproc)" "$@" || bad="$bad $setting"
}

for kernel in Prescott Nehalem Haswell Zen SkylakeX Cooperlake; do
  if ! OPENBLAS_CORETYPE=$kernel "$folder/headwise" info | grep -q "kernel $kernel\$"; then
    echo "=== $kernel: not on this machine, or not in this BLAS"
    continue
  fi
  run OPENBLAS_CORETYPE "$kernel" "$@"
done
for isa in sse4 avx2; do
  if HEADWISE_ISA=$isa "$folder/headwise" info >/dev/null 2>&1; then run HEADWISE_ISA "$isa" "$@"; fi
done
[ -z "$bad" ] || { echo "failed under:$bad"; exit 1; }
echo "all tests passed under all of them"
