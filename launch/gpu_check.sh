#!/usr/bin/env bash
# Checks and measures Kernelmill on this machine's GPU: tasks, exploits, clocks, truth of speedups,
# false alarms, faults, throughput and a run that is killed and resumed. It needs the unpacked
# tarball (it lies in its share/kernelmill/gpu_check), the CUDA toolkit and python3; for the
# contract torch a python3 with torch.
#   gpu_check.sh [PART...] [--seconds N] [...]      gpu_check.sh --help says which parts and options
# Raw results go to $OUT, or to a new folder below /tmp, which is named at the end.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="${GPU_CHECK_ROOT:-$(cd "$here/../../.." && pwd)}"
[ -x "$root/bin/kernelmill" ] || {
  echo "gpu_check.sh: there is no $root/bin/kernelmill: run it from the unpacked tarball" >&2
  exit 2
}
command -v nvcc >/dev/null || export PATH="/usr/local/cuda/bin:$PATH"
export GPU_CHECK_ROOT="$root" PYTHONPATH="$here:$here/tools${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
export OUT="${OUT:-$(mktemp -d /tmp/kernelmill-gpu-check-XXXXXX)}"
mkdir -p "$OUT"
exec python3 -m gpu_check "$@"
