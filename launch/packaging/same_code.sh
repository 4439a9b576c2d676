#!/usr/bin/env bash
# Prints HEAD and the commits before it whose verdicts hold for it, too (gpu_check's --add), a line each: the commit and the
# contracts of which they hold. Nothing that judges these differs, but for changes that same_verdicts.txt lists.
# `torch:untimed`: only what torch refused before it timed anything.
set -euo pipefail
cd "$(dirname "$0")/../.."

torch_lane=(gpu/torch)
code=(actors gpu messages launch/cmake launch/config launch/judging launch/machine launch/node launch/commands/judge.cpp
  configs/tasks CMakeLists.txt CMakePresets.json)
differs() { # paths...
  ! git diff --quiet "$commit^" "$commit" -- "$@" 2>/dev/null
}

torch=" torch"
while read -r commit; do
  echo "$commit native device$torch"
  known=$(sed -n "s/^$commit \([a-z]*\) .*/\1/p" launch/packaging/same_verdicts.txt)
  [ "$known" = all ] && continue
  differs "${code[@]}" ":!${torch_lane[0]}" && break
  if differs "${torch_lane[@]}"; then
    [ "$known" = untimed ] && [ -n "$torch" ] && torch=" torch:untimed" || torch=""
  fi
done < <(git rev-list --abbrev-commit --abbrev=12 --max-count=100 HEAD)
