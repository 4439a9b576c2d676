#!/usr/bin/env bash
# Installs the Debian packages that Kernelmill needs; does nothing when all are present.
#   launch/packages.sh build   what the build and the quickstart need
#   launch/packages.sh test    that, plus what the tests and benchmarks need; ruff, and a hook for commits
#   launch/packages.sh package what the build needs, plus what makes the tarball and the .deb
set -euo pipefail

build=(
  g++ cmake ninja-build ccache pkg-config
  libcaf-dev capnproto libcapnp-dev liblmdb-dev libfaiss-dev libopenblas-pthread-dev
  nlohmann-json3-dev libcurl4-openssl-dev libssl-dev libsimdjson-dev libzstd-dev libcli11-dev
  libspdlog-dev libmimalloc-dev libfmt-dev libxxhash-dev libexpected-dev libseccomp-dev bubblewrap
  libncurses-dev libsqlite3-dev libyaml-cpp-dev zlib1g-dev lld
)
test=(
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev libvalijson-dev
  python3-minimal python3-venv clang-format mypy python3-aiohttp python3-yaml shellcheck codespell systemd openssl hipcc
  chromium chromium-driver python3-selenium python3-prometheus-client
  python3-torch libtorch-dev pybind11-dev python3-dev
  clang libclang-rt-dev # tests/fuzz
  openssh-server openssh-client iproute2 # tests/integration/remote
)
package=(patchelf dpkg-dev file libamdhip64-dev)

case "${1:-build}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  package) wanted=("${build[@]}" "${package[@]}") ;;
  *) echo "usage: launch/packages.sh build|test|package" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done

# What tests need beside Debian's packages: ruff, and git's hook for messages of commits.
finish() {
  [ "${1:-build}" = test ] || return 0
  "$tools/ruff.sh" --version >/dev/null || echo "packages.sh: without ruff the test folders.ruff is skipped" >&2
  if top=$(git -C "$tools" rev-parse --show-toplevel 2>/dev/null) && [ "$top/launch/tools" = "$tools" ] &&
    ! git -C "$top" config --get core.hooksPath >/dev/null; then
    git -C "$top" config core.hooksPath launch/tools/hooks
  fi
}
tools=$(cd "$(dirname "$0")" && pwd -P)/tools

if [ "${#missing[@]}" -eq 0 ]; then
  finish "$@"
  exit 0
fi

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "packages.sh: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 77; }
  sudo=(sudo)
fi
echo "Installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq >&2
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
finish "$@"
