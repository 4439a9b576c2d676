#!/usr/bin/env bash
# Makes a Python that has the trainers which the tests of exports and of the Python client run, and prints how to use it.
#   tests/trainers.sh [DIR]     /tmp/kernelmill-trainers; 6 GB, some minutes
# SkyRL, prime-rl, Harbor, Megatron, slime and NeMo-Gym are not installed, since they want a cluster's worth of packages or are no
# packages: unpack their wheels (`pip download --no-deps`: skyrl, harbor) or sources into one folder (DIR/skyrl/skyrl/..., and so
# prime_rl, harbor, megatron, slime, nemo_gym; DIR/kernelgym/drkernel/... with verl 0.6.1 in DIR/kernelgym/verl/...) and set
# KERNELMILL_TRAINER_SOURCES to it.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-/tmp/kernelmill-trainers}
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --requirement tests/trainers.txt
# Without what they depend on, which wants a GPU, older versions of the above, or what PyPI has not.
"$folder/bin/pip" install --quiet --no-deps flashinfer-bench==0.1.2 verl==0.9.1 tinker-cookbook==0.6.1
echo "KERNELMILL_TRAINER_PYTHON=$folder/bin/python ctest --test-dir build -R '^exports\\.|^client\\.|adapters_test|openenv_test|drkernel_test'"
