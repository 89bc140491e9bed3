#!/bin/sh
# Installs what is missing, builds headwise and its tests, and runs every test.
#   sh tests/run.sh [--sanitize] [CTEST OPTION ...]
# --sanitize builds with the address and undefined-behaviour sanitizers, in a folder of its own. CXX chooses
# another compiler, which needs a folder of its own too: CXX=clang++-16 BUILD=build-clang sh tests/run.sh
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh

# The run-time libraries of both OpenBLAS builds: the tests run under each.
# shellcheck disable=SC2086  # a list of words
install_packages $build_packages catch2 libopenblas0-pthread libopenblas0-openmp

folder=${BUILD:-build}
if [ "${1:-}" = --sanitize ]; then
  shift
  folder=${BUILD:-build-sanitize}
  sanitize=-DHEADWISE_SANITIZE=address,undefined
fi
build "$folder" -DHEADWISE_BUILD_TESTS=ON ${sanitize:-}
exec ctest --test-dir "$folder" --output-on-failure --parallel "$(nproc)" "$@"
