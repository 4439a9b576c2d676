#!/usr/bin/env bash
# --on on a machine with a GPU and without sshd: a client that only runs the far end's script here takes ssh's place.
# Compares verdicts with and without --on and prints a table last.
#   tests/integration/remote/gpu_smoke.sh [BACKEND]     cuda, or cpu to try the script itself
set -euo pipefail
backend=${1:-cuda}
kernelmill=${KERNELMILL_BIN_DIR:-$(cd "$(dirname "$0")/../../.." && pwd)/build/bin}/kernelmill
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/ssh" <<EOF
#!/bin/bash
export XDG_CACHE_HOME=$work/far HOME=$work/far
exec sh -c "\${@: -1}"
EOF
chmod +x "$work/ssh"
export KERNELMILL_SSH=$work/ssh
mkdir -p "$work/far" && cd "$work"
kernel=row_sum.cpp
[ "$backend" = cuda ] && kernel=row_sum.cu
if [ "$backend" = cuda ]; then
  cat >row_sum.cu <<'EOF'
__global__ void sum_rows(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x;
  float s = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) s += x[(long)r * cols + c];
  __shared__ float part[256];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int n = 128; n > 0; n /= 2) {
    if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[r] = part[0];
}
extern "C" void solve(const float* x, float* y, int rows, int cols) { sum_rows<<<rows, 256>>>(x, y, rows, cols); }
EOF
else
  cat >row_sum.cpp <<'EOF'
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    double s = 0;
    for (int c = 0; c < cols; ++c) s += x[(long)r * cols + c];
    y[r] = (float)s;
  }
}
EOF
fi
outcome() { python3 -c 'import json, sys; x = json.load(sys.stdin); print(x["outcome"], x.get("category", ""))'; }
table=()
row() { table+=("$(printf '%-22s %-10s %s' "$1" "$2" "$3")"); }
words=(eval --task native/row_sum --backend "$backend" --json "$kernel")
here=$("$kernelmill" "${words[@]}" | outcome)
started=$SECONDS
there=$("$kernelmill" "${words[@]}" --on far | outcome)
row "eval, first" "$([ "$here" = "$there" ] && echo same || echo DIFFERS)" "$there, $((SECONDS - started)) s"
started=$SECONDS
there=$("$kernelmill" "${words[@]}" --on far --bundle found | outcome)
row "eval, second" "$([ -d found ] && echo ok || echo FAILED)" "bundle of $(find found -type f | wc -l) files, $((SECONDS - started)) s"
started=$SECONDS
code=0
"$kernelmill" profile --task native/row_sum "$kernel" --json --on far >profile.json 2>profile.err || code=$?
row "profile" "exit $code" "$(head -c 60 profile.err | tr '\n' ' ')$((SECONDS - started)) s"
code=0
"$kernelmill" run quickstart run.dir=runs/first evaluation.backend="$backend" 'tasks.ids=["native/row_sum"]' --on far >run.txt 2>&1 || code=$?
row "run" "exit $code" "$(grep -E '^(finished|failed)' run.txt | head -1)"
row "sessions left" "$(find far -path '*/sessions/*' -maxdepth 5 | wc -l)" "0 is right"
printf '%s\n' "${table[@]}"
