#!/bin/sh
# headwise.hpp must include every public header, and each must compile by itself.
#   sh tests/headers_check.sh COMPILER [FLAG ...]
set -eu
cd "$(dirname "$0")/../include"
bad=0
for header in $(find headwise -mindepth 2 -name "*.hpp"); do
  grep -qxF "#include \"$header\"" headwise/headwise.hpp || { echo "headwise.hpp lacks $header"; bad=1; }
done
find headwise -name "*.hpp" | xargs -P 2 -I HEADER "$@" -std=c++20 -I . -fsyntax-only -include HEADER -x c++ /dev/null || bad=1
exit $bad
