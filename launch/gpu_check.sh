#!/usr/bin/env bash
# Checks and measures Kernelmill on this machine's GPU: tasks, exploits, clocks, faults, throughput
# and a run that is killed and resumed. It needs the unpacked tarball (it lies in its
# share/kernelmill/gpu_check), the CUDA toolkit and python3.
#   gpu_check.sh [PART...]    parts: tasks exploits torch_exploits clocks same torch_same planted
#                             faults speed run device_run
# Raw results go to $OUT, or to a new folder below /tmp, which is named at the end.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../../.." && pwd)"
[ -x "$root/bin/kernelmill" ] || {
  echo "gpu_check.sh: there is no $root/bin/kernelmill: run it from the unpacked tarball" >&2
  exit 2
}
command -v nvcc >/dev/null || export PATH="/usr/local/cuda/bin:$PATH"
export OUT="${OUT:-$(mktemp -d /tmp/kernelmill-gpu-check-XXXXXX)}"
exec python3 "$here/gpu_check.py" "$root" "$OUT" "$@"
