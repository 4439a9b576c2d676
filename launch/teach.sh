#!/usr/bin/env bash
# Makes a small policy, pretrains it on texts that templates write, and teaches it by GRPO on its own episodes.
#   launch/teach.sh FOLDER [--config FILE] [--seed N] [--pretrained FOLDER]
# Everything lies in FOLDER; the same command again goes on where it was, whatever was killed. $KERNELMILL_PYTHON names a Python
# with torch (otherwise python3), $KERNELMILL the program (otherwise the build's, or that on PATH). docs/how-to/teach-a-policy.md
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${KERNELMILL_PYTHON:-python3}
kernelmill=${KERNELMILL:-}
for directory in ${KERNELMILL_BIN_DIR:+"$KERNELMILL_BIN_DIR"} "$here/../build/bin" "$here/../../../bin"; do
  if [ -z "$kernelmill" ] && [ -x "$directory/kernelmill" ]; then kernelmill=$directory/kernelmill; fi
done
: "${kernelmill:=$(command -v kernelmill || true)}"
[ -n "$kernelmill" ] || { echo "teach.sh: build kernelmill first: launch/quickstart.sh" >&2; exit 3; }
"$python" -c 'import torch' 2>/dev/null ||
  { echo "teach.sh: $python has no torch; name one that has: KERNELMILL_PYTHON=..." >&2; exit 3; }
export PYTHONPATH="$here:$here/learning${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -B -m trainer.teach --program "$kernelmill" "$@"
