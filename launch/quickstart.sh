#!/usr/bin/env bash
# From a bare Debian 12 machine to a finished run: packages, build, the main job.
#   launch/quickstart.sh [key=value...]   overrides of configs/quickstart.json
set -euo pipefail
cd "$(dirname "$0")/.."

launch/packages.sh build
[ -f build/build.ninja ] || cmake --preset default -DKERNELMILL_TESTS=OFF >&2
launch/build.sh default kernelmill
exec build/bin/kernelmill run configs/quickstart.json "$@"
