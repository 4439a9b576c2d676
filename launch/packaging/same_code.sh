#!/usr/bin/env bash
# Prints HEAD and the commits before it that differ from it in nothing that judges, a line each: what they measured holds
# for it, too (gpu_check's --add). Changes that same_verdicts.txt lists do not count, for the reasons given there.
set -euo pipefail
cd "$(dirname "$0")/../.."

code=(actors gpu messages launch/cmake launch/config launch/judging launch/machine launch/node launch/commands/judge.cpp
  configs/tasks CMakeLists.txt CMakePresets.json)
while read -r commit; do
  echo "$commit"
  grep -q "^$commit " launch/packaging/same_verdicts.txt && continue
  git diff --quiet "$commit^" "$commit" -- "${code[@]}" 2>/dev/null || break
done < <(git rev-list --abbrev-commit --abbrev=12 --max-count=100 HEAD)
