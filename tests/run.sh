#!/bin/sh
# Installs what is missing, builds headwise and its tests, and runs every test.
#   sh tests/run.sh [--sanitize] [CTEST OPTION ...]
# --sanitize builds with the address and undefined-behaviour sanitizers, in a folder of its own.
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh

# The run-time libraries of both OpenBLAS builds: the tests run under each.
# shellcheck disable=SC2086  # a list of words
install_packages $build_packages catch2 libopenblas0-pthread libopenblas0-openmp

if [ "${1:-}" = --sanitize ]; then
  shift
  build build-sanitize -DHEADWISE_BUILD_TESTS=ON -DHEADWISE_SANITIZE=address,undefined
  exec ctest --test-dir build-sanitize --output-on-failure --parallel "$(nproc)" "$@"
fi
build build -DHEADWISE_BUILD_TESTS=ON
exec ctest --test-dir build --output-on-failure --parallel "$(nproc)" "$@"
