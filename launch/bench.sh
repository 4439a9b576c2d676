#!/usr/bin/env bash
# Builds and runs every benchmark, one after the other; nothing else should run meanwhile.
#   launch/bench.sh [--quick] [Google Benchmark arguments...]
# --quick shortens the comparison with aiohttp, which takes seven minutes otherwise, and the cluster's
# rows, which take three.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=()
if [ "${1:-}" = --quick ]; then
  quick=(--quick)
  shift
fi
launch/packages.sh test
cmake --preset bench >&2
cmake --build --preset bench --parallel "$(nproc)" >&2
shopt -s nullglob
benchmarks=(build-bench/bench/*_bench)
[ "${#benchmarks[@]}" -gt 0 ] || { echo "bench.sh: no benchmark was built" >&2; exit 1; }
export KERNELMILL_BIN_DIR="$PWD/build-bench/bin" KERNELMILL_SOURCE_DIR="$PWD"
for program in "${benchmarks[@]}"; do
  [ "$program" != build-bench/bench/cluster_bench ] || continue # takes other arguments
  echo "== $(basename "$program")"
  "$program" "$@"
done
echo "== cluster_bench"
build-bench/bench/cluster_bench "${quick[@]}"
echo "== policy_bench.py"
tests/bench/policy_bench.py "${quick[@]}"
