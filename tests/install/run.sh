#!/bin/sh
# Installs a build, moves the result elsewhere, and builds and runs another project against it.
#   sh tests/install/run.sh BUILD_FOLDER COMPILER [COMPILER_FLAGS]
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/first" >"$scratch/installed" || { cat "$scratch/installed"; exit 1; }
mv "$scratch/first" "$scratch/moved"
rm "$scratch/installed"
cp -r "$source/tests/install" "$scratch/other"
cmake -S "$scratch/other" -B "$scratch/other/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$2" \
  -DCMAKE_CXX_FLAGS="${3:-}" -DCMAKE_PREFIX_PATH="$scratch/moved"
cmake --build "$scratch/other/build"
"$scratch/other/build/other"
"$scratch/moved/bin/headwise" --version

# Nothing of it may know where it was built (but the log of a compiler asked for its name, which
# tells the folder it was called in), and what is private stays so.
bad=0
if grep -rIlF --exclude=CMakeOutput.log -e "$source" -e "$build" -e "$scratch/first" "$scratch"; then
  echo "the files above name $source, $build or the first prefix"
  bad=1
fi
for private in kernels cli; do
  [ ! -e "$scratch/moved/include/headwise/$private" ] || { echo "$private is installed"; bad=1; }
done
exit $bad
