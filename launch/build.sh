#!/usr/bin/env bash
# Builds targets of a configured preset and says on stderr how far it is, in percent of the steps and minutes.
#   launch/build.sh PRESET [TARGET...]
# What the compilers say is in build*/build.log, and on stderr when the build fails.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
[ "$preset" = default ] && build=build || build=build-$preset
targets=()
[ $# = 0 ] || targets=(--target "$@")

begin=$SECONDS last=-1
tell() { # a line of ninja: "[done/all] what"
  [[ $1 =~ ^\[([0-9]+)/([0-9]+)\] ]] || return 0
  local percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2])) minutes
  minutes=$(printf '%d:%02d' $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)))
  if [ -t 2 ]; then
    printf '\rBuilding: %3d %%, %s min ' "$percent" "$minutes" >&2
  elif [ "$percent" -ge $((last + 10)) ]; then
    echo "Building: $percent %, $minutes min" >&2
    last=$percent
  fi
}

code=0
cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}" 2>&1 | tee "$build/build.log" |
  while IFS= read -r line; do tell "$line"; done || code=$?
[ ! -t 2 ] || echo >&2
if [ "$code" != 0 ]; then
  grep -vE '^\[[0-9]+/[0-9]+\]' "$build/build.log" | tail -n 200 >&2
  echo "build.sh: the build failed; all that it said is in $build/build.log" >&2
fi
exit "$code"
