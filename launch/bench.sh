#!/usr/bin/env bash
# Builds and runs every benchmark, one after the other; nothing else should run meanwhile.
#   launch/bench.sh [--quick] [Google Benchmark arguments...]
#   launch/bench.sh retrieval [--quick]     the searches of an index alone, beside FAISS
#   launch/bench.sh worth recall|reward     what examples are worth; $KERNELMILL_SERVING_PYTHON runs the model
# --quick shortens the comparison with aiohttp, which takes seven minutes otherwise, the cluster's rows,
# which take three, and the searches of an index.
set -euo pipefail
cd "$(dirname "$0")/.."

only=
if [ "${1:-}" = retrieval ]; then
  only=$1
  shift
fi
quick=()
if [ "${1:-}" = --quick ]; then
  quick=(--quick)
  shift
fi
if [ "${1:-}" = worth ]; then
  shift
  export KERNELMILL_BIN_DIR="${KERNELMILL_BIN_DIR:-$PWD/build/bin}"
  exec "${KERNELMILL_SERVING_PYTHON:-python3}" -B tests/bench/retrieval_worth.py "$@"
fi
launch/packages.sh test
cmake --preset bench >&2
cmake --build --preset bench --parallel "$(nproc)" ${only:+--target "${only}_bench"} >&2
shopt -s nullglob
benchmarks=(build-bench/bench/*_bench)
[ "${#benchmarks[@]}" -gt 0 ] || { echo "bench.sh: no benchmark was built" >&2; exit 1; }
export KERNELMILL_BIN_DIR="$PWD/build-bench/bin" KERNELMILL_SOURCE_DIR="$PWD"
if [ -n "$only" ]; then
  exec "build-bench/bench/${only}_bench" "${quick[@]}"
fi
for program in "${benchmarks[@]}"; do
  case "$program" in */cluster_bench | */retrieval_bench) continue ;; esac # take other arguments
  echo "== $(basename "$program")"
  "$program" "$@"
done
echo "== cluster_bench"
build-bench/bench/cluster_bench "${quick[@]}"
echo "== retrieval_bench"
build-bench/bench/retrieval_bench "${quick[@]}"
echo "== policy_bench.py"
tests/bench/policy_bench.py "${quick[@]}"
