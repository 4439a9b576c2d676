#!/usr/bin/env bash
# Installs what the tests need, builds, and runs them.
#   launch/test.sh [PRESET] [--all | --nightly] [ctest arguments...]
# Without --all, tests with the labels `slow` and `nightly` do not run: docs/reference/tests.md says which, and which smoke
# case of each does. --all, which CI runs, leaves out the nightly ones alone. PRESET is default, dev, asan-ubsan, tsan or
# debug. What follows goes to ctest: launch/test.sh -R config
#   launch/test.sh fuzz [SECONDS]     each fuzz target for so many seconds (60), one after the other
set -euo pipefail
cd "$(dirname "$0")/.."

preset=default chosen=(--label-exclude '^(slow|nightly)$')
case "${1:-}" in
  default | dev | debug | asan-ubsan | tsan) preset=$1; shift ;;
esac
case "${1:-}" in
  --all) chosen=(--label-exclude '^nightly$'); shift ;;
  --nightly) chosen=(); shift ;;
esac

launch/packages.sh test
if [ "${1:-}" = fuzz ]; then
  exec tests/fuzz/run.sh "${@:2}"
fi
# The quickstart configures without tests; the cache remembers that unless it is told otherwise.
cmake --preset "$preset" -DKERNELMILL_TESTS=ON
launch/build.sh "$preset"
[ "$preset" = default ] && build=build || build=build-$preset
failures=$build/Testing/Temporary/LastTestsFailed.log
rm -f "$failures"
# No exec and no pipe: ctest's closing lines are seen, and its code is ours.
code=0
ctest --preset "$preset" --output-on-failure --parallel 2 "${chosen[@]}" "$@" || code=$?
[ "$code" = 0 ] && exit 0

# Tests on real processes share two cores. One that fails beside others and passes alone is named,
# and is to be mended. More than three at once are no accident.
[ -s "$failures" ] || exit "$code"
failed=$(sed 's/^[0-9]*://' "$failures")
[ "$(wc -l <<<"$failed")" -le 3 ] || exit "$code"
printf '\nOnce more, alone:\n'
ctest --preset "$preset" --output-on-failure --rerun-failed || exit $?
while read -r name; do echo "UNSTABLE, failed beside others and passed alone: $name"; done <<<"$failed"
