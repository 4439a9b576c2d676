# shellcheck shell=bash disable=SC2034
# Of the tests in this folder, which source it. They leave no process and no file behind.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=${KERNELMILL_SOURCE_DIR:-$(cd "$here/../../.." && pwd)}
scratch=$(mktemp -d)
failures=0
export FAKE_STATE=$scratch/state

check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then echo "ok: $name"; else echo "FAILED: $name"; failures=$((failures + 1)); fi
}
refuses() { ! "$@"; }

# Waits for a command to succeed, and goes on without it after a while: a check then says so. A busy
# machine may take minutes to start a cluster.
until_true() {
  local until=$((SECONDS + 200))
  while [ "$SECONDS" -lt "$until" ]; do
    if "$@" 2>/dev/null; then return 0; fi
    sleep 0.05
  done
  return 1
}

logged() { grep -q "$1" "$FAKE_STATE/log"; }
times() { [ "$(grep -c "$2" "$FAKE_STATE/log")" -eq "$1" ]; }
before() { # the first line of one kind comes before that of another
  local a b
  a=$(grep -n "$1" "$FAKE_STATE/log" | head -n 1 | cut -d : -f 1)
  b=$(grep -n "$2" "$FAKE_STATE/log" | head -n 1 | cut -d : -f 1)
  [ -n "$a" ] && [ -n "$b" ] && [ "$a" -lt "$b" ]
}

# The head and node of this build, or until it has them something that keeps their contract.
use_kernelmill() {
  mkdir -p "$scratch/bin"
  if "${KERNELMILL_BIN_DIR:?}/kernelmill" help head >/dev/null 2>&1; then
    real=1
    ln -sf "$KERNELMILL_BIN_DIR/kernelmill" "$scratch/bin/kernelmill"
  else
    real=
    ln -sf "$here/fake/kernelmill" "$scratch/bin/kernelmill"
  fi
  kernelmill=$scratch/bin/kernelmill
}

fresh_state() { rm -rf "$FAKE_STATE"; mkdir -p "$FAKE_STATE"; : >"$FAKE_STATE/log"; : >"$FAKE_STATE/tasks"; }

# Processes of this test that are still there: they have its scratch directory in their environment.
left_over() {
  local process
  for process in /proc/[0-9]*; do
    # The shell itself and what it runs to look have it too.
    case ${process#/proc/} in "$$" | "$BASHPID") continue ;; esac
    if tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qxF "FAKE_STATE=$FAKE_STATE"; then
      echo "${process#/proc/}"
    fi
  done
}
nothing_left() { [ -z "$(left_over)" ]; }

end_test() {
  local code=$? process
  disown -a # or the shell reports each
  for process in $(left_over); do kill -KILL "$process" 2>/dev/null || true; done
  if [ "$failures" -gt 0 ] || [ "$code" -ne 0 ]; then
    cat "$FAKE_STATE/log" "$scratch"/*.log 2>/dev/null
    echo "$failures checks failed"
    code=1
  fi
  rm -rf "$scratch"
  exit "$code"
}
trap end_test EXIT
