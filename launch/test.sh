#!/usr/bin/env bash
# Installs what the tests need, builds, and runs every test.
#   launch/test.sh [PRESET] [ctest arguments...]
# KERNELMILL_UNITY=OFF in the environment compiles each source by itself: twice the time, less of a small change.
# PRESET is default, debug, asan-ubsan or tsan. What follows goes to ctest: launch/test.sh -R config
#   launch/test.sh fuzz [SECONDS]     each fuzz target for so many seconds (60), one after the other
set -euo pipefail
cd "$(dirname "$0")/.."

preset=default
case "${1:-}" in
  default | debug | asan-ubsan | tsan) preset=$1; shift ;;
esac

launch/packages.sh test
if [ "${1:-}" = fuzz ]; then
  exec tests/fuzz/run.sh "${@:2}"
fi
# The quickstart configures without tests and for one whole build; the cache remembers that unless
# it is told otherwise.
cmake --preset "$preset" -DKERNELMILL_TESTS=ON -DKERNELMILL_UNITY="${KERNELMILL_UNITY:-ON}"
cmake --build --preset "$preset" --parallel "$(nproc)"
# No exec and no pipe: ctest's closing lines are the last that one sees, and its code is ours.
ctest --preset "$preset" --output-on-failure --parallel 2 "$@"
