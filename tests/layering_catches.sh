#!/bin/sh
# Shows that tests/layering_check.sh fails on what it must: sh tests/layering_catches.sh
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# expect FILE LINE WORDS: with LINE added to FILE, the check must fail and say WORDS.
expect() {
  rm -rf "$scratch/include" "$scratch/src"
  cp -r include src "$scratch"
  printf '%s\n' "$2" >>"$scratch/$1"
  if sh tests/layering_check.sh "$scratch" >"$scratch/said"; then
    echo "not caught: '$2' in $1"
    exit 1
  fi
  grep -q "$3" "$scratch/said" || { echo "caught '$2' in $1, but said:"; cat "$scratch/said"; exit 1; }
}

expect src/core/tensor.cpp '#include "headwise/ops/ops.hpp"' 'layer core may not include ops'
expect src/nn/modules.cpp '#include "headwise/train/trainer.hpp"' 'layer nn may not include train'
expect include/headwise/ops/ops.hpp '#include "kernels/kernels.hpp"' 'layer ops may not include kernels'
expect src/data/text.cpp '#include "headwise/autograd/tape.hpp"' 'layer data may not include autograd'
expect src/ops/linear.cpp '#include <cblas.h>' 'only src/core/gemm.cpp'
expect src/kernels/attention.cpp '#pragma omp parallel' 'only src/core/parallel.cpp'
expect src/train/trainer.cpp 'void f() { fmt::print("x"); }' 'does not print'
expect src/cli/eval.cpp 'void f() { fmt::print(stderr, "x"); }' 'only src/cli/message.hpp'
expect src/models/decoder.cpp 'const float* f(Tensor<float>& x) { return x.data(); }' 'do not touch .data()'
expect include/headwise/nn/modules.hpp 'template <Real T>
struct Forgotten {
  Param<T> gain;
  void visit(auto&& v) { v("gain", gain); }
};' 'layer Forgotten is not in layers.def'
echo "every planted include was caught"
