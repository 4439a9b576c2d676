#!/usr/bin/env bash
# Prints HEAD and the commits before it whose verdicts hold for it, too (gpu_check's --add), a line each: the commit and the
# contracts of which they hold, for which nothing that judges differs.
set -euo pipefail
cd "$(dirname "$0")/../.."

torch_lane=gpu/torch
code=(actors gpu messages launch/cmake launch/config launch/judging launch/machine launch/node launch/commands/judge.cpp
  configs/tasks CMakeLists.txt CMakePresets.json)
differs() { # paths...
  ! git diff --quiet "$commit^" "$commit" -- "$@" 2>/dev/null
}

torch=" torch"
while read -r commit; do
  echo "$commit native device$torch"
  if differs "${code[@]}" ":!$torch_lane"; then break; fi
  if differs "$torch_lane"; then torch=""; fi
done < <(git rev-list --abbrev-commit --abbrev=12 --max-count=100 HEAD)
