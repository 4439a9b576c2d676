#!/usr/bin/env bash
# Prints HEAD and the commits before it whose verdicts hold for it, too (gpu_check's --add), a line each: the commit and the
# contracts of which they hold, for which nothing that judges differs; of torch also whether they do where a language is wanted.
set -euo pipefail
cd "$(dirname "$0")/../../.."

torch_lane=(gpu/torch)
rows_lane=("gpu/referee/row_arithmetic.*") # of the contracts native and device alone; gpu/torch includes none of it
row_sources="clocked_rows|device_rows|device_timing|disturbed_rows|pair_taking|quiet|timed_rows|timing_summary"
for name in ${row_sources//|/ }; do rows_lane+=("gpu/referee/device/$name.*"); done
referee_sources=gpu/referee/CMakeLists.txt
code=(actors gpu messages launch/cmake launch/config launch/judging launch/machine launch/node launch/commands/judge/judge.cpp
  configs/tasks CMakeLists.txt CMakePresets.json)
differs() { # paths...
  ! git diff --quiet "$commit^" "$commit" -- "$@" 2>/dev/null
}
other_sources() { # of the referee in a commit
  git show "$1:$referee_sources" | sed -E "s#device/($row_sources)\.cpp ?##g"
}

compiled=" native device" torch=" torch" language=" torch_language"
while read -r commit; do
  [ -n "$compiled$torch" ] || break
  echo "$commit$compiled$torch$language"
  if differs "${code[@]}" ":!$referee_sources" "${torch_lane[@]/#/:!}" "${rows_lane[@]/#/:!}"; then break; fi
  if differs "$referee_sources" && [ "$(other_sources "$commit^")" != "$(other_sources "$commit")" ]; then break; fi
  if differs "${torch_lane[@]}"; then
    language=""
    [ -z "$torch" ] || launch/tools/packaging/same_torch.py "$commit^" "$commit" || torch=""
  fi
  if differs "${rows_lane[@]}" "$referee_sources"; then compiled=""; fi
done < <(git rev-list --abbrev-commit --abbrev=12 --max-count=100 HEAD)
