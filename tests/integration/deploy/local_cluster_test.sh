#!/usr/bin/env bash
# launch/local_cluster.sh: what it starts, in which order it ends it, and that nothing stays.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

use_kernelmill
script=$source/launch/local_cluster.sh
export KERNELMILL_BIN_DIR=$scratch/bin TMPDIR=$scratch/tmp
mkdir -p "$TMPDIR"
cd "$scratch"

# In the background a shell ignores Ctrl-C for what it starts; a terminal does not.
start() { # OPTIONS...
  fresh_state
  python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
    "$script" -r "$scratch/runs" "$@" >"$scratch/out" 2>"$scratch/script.log" &
  job=$!
}
ends() { local code=0; wait "$job" || code=$?; [ "$code" -eq "$1" ] || { echo "ended with $code"; false; }; }
started() { until_true times "$1" 'node local. starts'; }
no_scratch() { [ -z "$(ls -A "$TMPDIR")" ]; }

check "an impossible number of nodes is a usage error" refuses "$script" -n 0 2>/dev/null

if [ -n "$real" ]; then
  start -n 2 quickstart tasks.ids='["native/row_sum"]' tasks.group_size=2 tasks.max_turns=1
  check "the real program finishes a run" ends 0
  check "nothing stays" until_true nothing_left
  start -n 1
  check "without a configuration it prints the head's address" until_true grep -q '^127.0.0.1:[0-9][0-9]*$' "$scratch/out"
  kill -INT "$job"
  check "Ctrl-C ends it" ends 130
  check "nothing stays" until_true nothing_left
  exit 0
fi

start -n 3 quickstart a.b=1
started 3
check "the head takes any port of the loopback" logged "head starts: head --listen 127.0.0.1:0 --root $scratch/runs"
check "nodes have names of their own" logged 'node local2 starts: node --head 127.0.0.1:45678 --name local2'
check "the configuration is submitted" until_true logged 'submit starts: submit quickstart a.b=1 --wait'
check "credentials are made" logged 'cluster starts: cluster init --dir'
until_true test -e "$scratch/runs/unnamed"
touch "$FAKE_STATE/finish"
check "it ends with the run's code" ends 0
check "nodes drain while the head is there" times 3 'drained by SIGTERM, head there'
check "nothing stays" until_true nothing_left
check "its files are gone" no_scratch
rm -rf "$scratch/runs"

start -n 2
started 2
kill -INT "$job"
check "Ctrl-C ends it with 130" ends 130
check "nodes drain while the head is there" times 2 'drained by SIGTERM, head there'
check "the head ends after them" logged 'head ends 0 SIGTERM'
check "nothing stays" until_true nothing_left
check "its files are gone" no_scratch

FAKE_DRAIN_SECONDS=60 start -n 2
started 2
kill -INT "$job"
sleep 0.5
kill -INT "$job"
check "a second Ctrl-C does not wait" ends 130
check "nothing stays" until_true nothing_left

start -n 2
started 2
kill -KILL "$job"
wait "$job" 2>/dev/null || true
check "nothing outlives a kill of the script" until_true nothing_left
check "and nodes were asked, not killed" times 2 'drained by SIGTERM'
rm -rf "${TMPDIR:?}"/*

start -n 2
started 2
kill -KILL "$(cat "$FAKE_STATE/head.pid")"
check "a head that dies ends it" ends 137
check "nothing stays" until_true nothing_left

FAKE_NODE_FAILS=1 start -n 2
check "without nodes it ends" ends 1
check "nothing stays" until_true nothing_left

mkdir "$scratch/given"
start -n 1 -c "$scratch/given"
started 1
kill -TERM "$job"
check "given credentials are used" refuses logged 'cluster starts'
check "SIGTERM ends it as Ctrl-C" ends 130
check "given credentials stay" test -d "$scratch/given"
