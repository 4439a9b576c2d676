#!/usr/bin/env bash
# Runs the libFuzzer targets, one after the other, and prints what each did.
#   tests/fuzz/run.sh [SECONDS] [TARGET...]      60 seconds each unless told otherwise; all targets
# Builds the preset `fuzz` first (clang, address and undefined behaviour sanitizers). What a target
# learns stays in build-fuzz/corpus/TARGET, so that the next run goes on from there; what breaks one lies in
# build-fuzz/found and ends this with 1. Mend it, and add the input to tests/fuzz/found/TARGET.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=60
case "${1:-}" in
  [0-9]*) seconds=$1; shift ;;
esac
if ! command -v clang++ >/dev/null; then
  echo "run.sh: there is no clang++; launch/packages.sh test installs it" >&2
  exit 77
fi
targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
  mapfile -t targets < <(cd tests/fuzz/targets && printf '%s\n' *.cpp | sed 's/\.cpp$//')
fi

cmake --preset fuzz -DKERNELMILL_TESTS=ON >&2
cmake --build build-fuzz --parallel "$(nproc)" --target "${targets[@]/#/fuzz_}" >&2

broken=0
# -detect_leaks=0: LeakSanitizer needs ptrace, which containers forbid; memory is bounded below.
export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0"
export UBSAN_OPTIONS="print_stacktrace=1"
printf '%-13s %12s %10s %7s %9s %7s %8s %s\n' \
  target executions exec/s edges features corpus rss_mib result
for target in "${targets[@]}"; do
  learned=build-fuzz/corpus/$target
  found=build-fuzz/found/$target
  log=build-fuzz/found/$target.log
  mkdir -p "$learned" "$found"
  seeds=()
  for folder in corpus found; do
    [ ! -d "tests/fuzz/$folder/$target" ] || seeds+=("tests/fuzz/$folder/$target")
  done
  dictionary=()
  [ -f "tests/fuzz/dictionaries/$target.dict" ] && dictionary=("-dict=tests/fuzz/dictionaries/$target.dict")
  longest=65536 # half of it in brackets is what breaks a parser that recurses
  case "$target" in
    config | http | torch | ws) longest=8192 ;;
    answer | script) longest=16384 ;;
  esac
  result=well
  "build-fuzz/fuzz/fuzz_$target" "$learned" "${seeds[@]}" "${dictionary[@]}" -max_total_time="$seconds" \
    -max_len="$longest" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=600 -artifact_prefix="$found/" \
    -print_final_stats=1 -verbosity=1 >"$log" 2>&1 || { result="BROKEN: see $log"; broken=1; }
  last=$(grep -E '^#[0-9]+.*cov:' "$log" | tail -1 || true)
  number() { sed -nE "s/.*$1 *([0-9]+).*/\1/p" <<<"$2" | tail -1; }
  stat() { sed -nE "s/^stat::$1: *([0-9]+).*/\1/p" "$log" | tail -1; }
  printf '%-13s %12s %10s %7s %9s %7s %8s %s\n' "$target" "$(stat number_of_executed_units)" \
    "$(stat average_exec_per_sec)" "$(number cov: "$last")" "$(number ft: "$last")" \
    "$(find "$learned" -type f | wc -l)" "$(stat peak_rss_mb)" "$result"
done
exit "$broken"
