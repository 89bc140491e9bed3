#!/bin/sh
# Reads every include against the table of layers in src/README.md. sh tests/layering_check.sh [ROOT]
# Fails, naming file and line, on an include of ours from a layer that may not see it, on <cblas.h>
# outside core/gemm.cpp, on threads outside core/parallel.cpp, on printing from the library, on standard
# error outside cli/message.hpp, and on a layer whose gradients nobody would check.
set -eu
cd "${1:-$(dirname "$0")/..}"

allowed() { # LAYER: the layers it may include, besides itself
  case $1 in
    core) ;;
    kernels | data | autograd) echo core ;;
    ops) echo core kernels autograd ;;
    nn) echo core kernels autograd ops ;;
    models) echo core kernels autograd ops nn ;;
    train) echo core kernels data autograd ops nn models ;;
    study) echo core kernels data autograd ops nn models train ;;
    cli) echo core kernels data autograd ops nn models train study ;;
    *) echo "no such layer: $1" >&2; exit 1 ;;
  esac
}

bad=0
complain() { echo "$1"; bad=1; }

for file in $(find include/headwise/* src/* -mindepth 1 -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' \)); do
  layer=$(echo "$file" | sed -E 's#^(include/headwise|src)/([^/]+)/.*#\2#')
  may=" $layer $(allowed "$layer") "
  # kernels is private: headers that users include must not reach it.
  case $file in include/*) may=$(echo "$may" | sed 's/ kernels / /') ;; esac
  for hit in $(grep -nE '^ *# *include "' "$file" | sed -E 's/^([0-9]+):.*"(headwise\/)?([^\/"]+)\/.*/\1:\3/'); do
    seen=${hit#*:}
    case $seen in hwy) continue ;; esac
    case $may in *" $seen "*) ;; *) complain "$file:${hit%%:*}: layer $layer may not include $seen" ;; esac
  done
  case $file in
    src/core/gemm.cpp) ;;
    *) grep -nE 'include *<cblas' "$file" /dev/null && complain "$file: only src/core/gemm.cpp includes cblas.h" ;;
  esac
  case $file in
    src/core/parallel.cpp) ;;
    *) grep -nE 'include *<(omp\.h|thread|future)>|# *pragma omp' "$file" /dev/null && complain "$file: only src/core/parallel.cpp knows about threads" ;;
  esac
  case $file in
    src/cli/message.hpp) ;;
    *) grep -nE '\bstderr\b|std::c(err|log)\b' "$file" /dev/null && complain "$file: only src/cli/message.hpp writes to standard error" ;;
  esac
  case $layer in
    cli) ;;
    *) grep -nE 'fmt::print|std::(cout|cerr)|\bprintf\(' "$file" /dev/null && complain "$file: the library does not print" ;;
  esac
  case $layer in
    nn | models) grep -nE '\.data\(\)' "$file" /dev/null && complain "$file: nn and models call ops, they do not touch .data()" ;;
  esac
done
# A struct with visit() is a layer: its column-0 braces tell which visit() is whose.
for header in include/headwise/nn/*.hpp; do
  for layer in $(awk '/^(struct|class) / { name = $2 } / visit\(auto/ { print name } /^}/ { name = "" }' "$header"); do
    grep -q "^HEADWISE_LAYER($layer)" include/headwise/nn/layers.def || complain "$header: layer $layer is not in layers.def"
  done
done
[ "$bad" = 0 ] && echo "every include fits the table of layers"
exit "$bad"
