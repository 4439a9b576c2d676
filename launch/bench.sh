#!/usr/bin/env bash
# Builds and runs every benchmark, one after the other; nothing else should run meanwhile.
#   launch/bench.sh [Google Benchmark arguments...]
set -euo pipefail
cd "$(dirname "$0")/.."

launch/packages.sh test
cmake --preset default -DKERNELMILL_BENCH=ON >&2
cmake --build --preset default --parallel "$(nproc)" >&2
shopt -s nullglob
benchmarks=(build/bench/*_bench)
[ "${#benchmarks[@]}" -gt 0 ] || { echo "bench.sh: no benchmark was built" >&2; exit 1; }
export KERNELMILL_BIN_DIR="$PWD/build/bin" KERNELMILL_SOURCE_DIR="$PWD"
for program in "${benchmarks[@]}"; do
  echo "== $(basename "$program")"
  "$program" "$@"
done
