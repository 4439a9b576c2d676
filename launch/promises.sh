#!/usr/bin/env bash
# Shows the promises P1 to P15 one by one: each with the figure that this run measured, its goal and the
# command behind it. docs/explanation/promises.md says what each of them means.
#   launch/promises.sh [--quick | --full] [--only P3,P7] [--out DIR] [--json]
# --quick takes minutes, --full (the goals' own sizes) a day or more; without either some half an hour.
# Raw results go to --out, else to a new folder below /tmp, which is named at the end. What needs a GPU says
# which part of gpu_check.sh measures it. Ends with 0 when every promise that can be shown here is held, with
# 5 when one is not, with 2 on wrong options.
set -euo pipefail
cd "$(dirname "$0")/.."
export KERNELMILL_SOURCE_DIR="$PWD" KERNELMILL_BUILD_DIR="${KERNELMILL_BUILD_DIR:-$PWD/build}"
export KERNELMILL_BIN_DIR="$KERNELMILL_BUILD_DIR/bin"
export PYTHONPATH="$PWD/launch/tools${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
exec python3 -m promises "$@"
