# Set-up for examples/quickstart.sh and tests/run.sh, which read this file: packages and build.
# Not for running by itself.

# Prints those of the Debian packages named that are not installed, each after a space.
missing_packages() {
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf ' %s' "$package"
  done
}

# Installs the Debian packages that are missing of those named, saying which. On another system it
# says what is needed and stops, unless HEADWISE_SKIP_INSTALL is set.
install_packages() {
  [ -z "${HEADWISE_SKIP_INSTALL:-}" ] || return 0
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    cat >&2 <<TEXT
This system has no apt. Please install a C++20 compiler (g++ 12 or later), CMake 3.25 or later, OpenBLAS,
fmt, Google Highway 1.0, CLI11, nlohmann-json (and Catch2 for the tests), then run this again with
HEADWISE_SKIP_INSTALL=1 in the environment. In Debian's names: $*
TEXT
    exit 1
  fi
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  echo "Installing:$missing"
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "Please run as root: apt-get install$missing" >&2; exit 1; }
    as_root=sudo
  fi
  $as_root apt-get update -q >/dev/null || { echo "apt-get update failed" >&2; exit 1; }
  # shellcheck disable=SC2086  # a list of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null ||
    { echo "apt-get could not install:$missing" >&2; exit 1; }
}

build_packages="g++ make cmake libopenblas-dev libfmt-dev libhwy-dev libcli11-dev nlohmann-json3-dev"

# build FOLDER [CMAKE OPTION ...]: configures and builds; what is up to date is left alone. Files are compiled in
# batches, a third of the time of one by one; who works on the code sets HEADWISE_UNITY=OFF in the environment.
build() {
  folder=$1
  shift
  said=$(cmake -S . -B "$folder" -DHEADWISE_UNITY="${HEADWISE_UNITY:-ON}" "$@" 2>&1) || { echo "$said" >&2; exit 1; }
  cmake --build "$folder" --parallel "$(nproc)"
}
