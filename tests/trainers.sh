#!/usr/bin/env bash
# Makes a Python that has the trainers which the tests of exports hand rows to, and prints how to use it.
#   tests/trainers.sh [DIR]     /tmp/kernelmill-trainers; 6 GB, some minutes
# verl, SkyRL, prime-rl, Megatron and Harbor are not installed, since they want a cluster's worth of packages: unpack their
# wheels (`pip download --no-deps`: verl, skyrl, harbor) or sources into one folder (DIR/verl/verl/..., DIR/skyrl/skyrl/..., DIR/prime_rl/prime_rl/..., DIR/megatron/megatron/...,
# DIR/harbor/harbor/...)
# and set KERNELMILL_TRAINER_SOURCES to it.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-/tmp/kernelmill-trainers}
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --requirement tests/trainers.txt
# Its models of rows alone: what it depends on wants a GPU.
"$folder/bin/pip" install --quiet --no-deps flashinfer-bench==0.1.2
echo "KERNELMILL_TRAINER_PYTHON=$folder/bin/python ctest --test-dir build -R '^exports\\.'"
