# shellcheck shell=bash
# What kernelmill.sbatch and kernelmill_het.sbatch share; they source it. The batch script runs on
# the first machine of the job, and so does the head.
#
# Signals: Slurm's --signal=USR1 reaches every step and not the batch script. A node drains on USR1;
# the head ignores it, because it must outlive the nodes to take their last results. srun forwards
# USR1 to its tasks, but turns a TERM into a KILL of them: so this script never sends srun a TERM.

: "${SLURM_JOB_ID:?this is run by sbatch}"
kernelmill=${KERNELMILL:-kernelmill}
credentials=${KERNELMILL_CREDENTIALS:-$HOME/.local/state/kernelmill/cluster}
# The store of a run needs a local disk (LMDB refuses NFS, Lustre and their like), and a requeued job
# may start on another machine: so the runs live here, and are copied there when the job ends.
here=${KERNELMILL_LOCAL:-${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/kernelmill-$SLURM_JOB_ID}
saved=${KERNELMILL_SAVED:-${SLURM_SUBMIT_DIR:?}/kernelmill-$SLURM_JOB_ID}
run_name=slurm-$SLURM_JOB_ID
restarts=${SLURM_RESTART_COUNT:-0}

say() { echo "$(date +%FT%T) kernelmill.sbatch: $*" >&2; }

# -- the runs' directory -------------------------------------------------------------------------

age() { cat "$1/restart" 2>/dev/null || echo -1; }

# A job that was killed leaves its runs on a machine that a later start may come back to; of two
# copies the one of the later start counts.
restore_runs() {
  if [ "$(age "$saved")" -gt "$(age "$here")" ]; then
    say "taking the runs back from $saved"
    rm -rf "$here"
    mkdir -p "$(dirname "$here")"
    cp -a --sparse=always "$saved" "$here"
  fi
  mkdir -p "$here/runs"
  chmod 700 "$here"
  echo "$restarts" >"$here/restart"
  rm -f "$here/address" "$here/head.pid"
}

# The old copy stays until the new one is whole.
save_runs() {
  say "saving the runs to $saved"
  rm -rf "$saved.new"
  cp -a --sparse=always "$here" "$saved.new"
  rm -rf "$saved.old"
  if [ -e "$saved" ]; then mv "$saved" "$saved.old"; fi
  mv "$saved.new" "$saved"
  rm -rf "$saved.old" "$here"
}

# -- the head ------------------------------------------------------------------------------------

# start_head SRUN_OPTIONS...: sets `head`, the process id of its srun, and `address`.
start_head() {
  local first
  first=$(scontrol show hostnames "${SLURM_JOB_NODELIST_HET_GROUP_0:-$SLURM_JOB_NODELIST}" |
    head -n 1)
  # shellcheck disable=SC2016 # expanded by the step's shell
  srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" --cpu-bind=none --job-name=head "$@" \
    bash -c 'trap "" USR1; echo $$ >"$0"; exec "$@"' "$here/head.pid" \
    "$kernelmill" head --listen 0.0.0.0:0 --root "$here/runs" --credentials "$credentials" \
    >"$here/address" &
  head=$!
  # The port is known when the head prints it.
  until grep -q ':[0-9]' "$here/address"; do
    kill -0 "$head" 2>/dev/null || { say "the head did not start"; return 1; }
    sleep 0.2
  done
  address=$first:$(sed 's/.*://; q' "$here/address")
  export KERNELMILL_HEAD=$address KERNELMILL_CREDENTIALS=$credentials
  say "the head listens on $address"
}

stop_head() {
  [ -n "$head" ] || return 0
  kill -TERM "$(cat "$here/head.pid")" 2>/dev/null || true
  wait "$head" || say "the head ended with $?"
}

# -- the nodes -----------------------------------------------------------------------------------

nodes=() # process ids of their sruns

# start_nodes SRUN_OPTIONS... -- NODE_OPTIONS...: one node process on each machine.
start_nodes() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  # A task is a whole machine to Kernelmill, which pins its slots itself. One that ends, because it
  # was drained or has died, ends no other.
  # shellcheck disable=SC2016 # expanded by the step's shell
  srun --overlap --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=0 --wait=0 \
    --job-name=node "${options[@]}" \
    bash -c 'exec "$@" --name "$SLURMD_NODENAME"' node \
    "$kernelmill" node --head "$address" --credentials "$credentials" "$@" &
  nodes+=("$!")
}

drain_nodes() {
  local node
  for node in "${nodes[@]}"; do kill -USR1 "$node" 2>/dev/null || true; done
  for node in "${nodes[@]}"; do wait "$node" || say "nodes ended with $?"; done
}

# -- the run -------------------------------------------------------------------------------------

# What the head says of our run: "running", "finished", ...; empty when it does not know it.
run_state() {
  local status
  status=$("$kernelmill" status --head "$address" --json) || return
  # One object a line, since a cluster's machines need have no JSON tool.
  tr -d '\n' <<<"$status" | tr '{' '\n' | grep -F "\"$run_name\"" |
    sed -n 's/.*"state": *"\([a-z_]*\)".*/\1/p' | head -n 1 || true
}

# A head that starts again goes on with its runs by itself, so this only looks.
wait_for_run() {
  local state unknown=0
  while state=$(run_state); do
    case $state in
      finished) return 0 ;;
      failed | cancelled) return 1 ;;
      '') unknown=$((unknown + 1)) ;;
      *) unknown=0 ;;
    esac
    [ "$unknown" -lt 30 ] || { say "the head does not know $run_name"; return 3; }
    sleep "${KERNELMILL_POLL_SECONDS:-10}"
  done
  return 69
}

# start_run CONFIG...: sets `run`, a process that ends with the run.
start_run() {
  if [ "$restarts" -gt 0 ] && [ -d "$here/runs/$run_name" ]; then
    say "start $restarts: going on with $run_name"
    wait_for_run &
  else
    "$kernelmill" submit "$@" run.name="$run_name" --head "$address" --wait &
  fi
  run=$!
}

# Waits for the run, the head or the last node to end; sets `code`, which is 75 when the job is to be
# queued again, and forgets the processes that ended.
wait_for_end() {
  local ended others node
  cancelled=
  trap 'cancelled=1' TERM INT
  while :; do
    ended=
    code=0
    wait -n -p ended "$run" "$head" "${nodes[@]}" || code=$?
    if [ -n "$cancelled" ]; then code=143; return; fi # Slurm itself requeues what it preempts
    case $ended in
      "$run") return ;;
      "$head")
        say "the head ended with $code"
        head=
        [ "$code" -ne 0 ] || code=75
        return
        ;;
    esac
    say "nodes ended with $code"
    others=()
    for node in "${nodes[@]}"; do [ "$node" = "$ended" ] || others+=("$node"); done
    nodes=("${others[@]}")
    # Drained, as the end of the time limit asks: the run goes on in the next start. Nodes that
    # failed would fail again.
    if [ "${#nodes[@]}" -eq 0 ]; then [ "$code" -ne 0 ] || code=75; return; fi
  done
}

# finish: after wait_for_end. Ends with the run's code, or queues the job again.
finish() {
  drain_nodes
  stop_head
  kill "$run" 2>/dev/null || true
  wait "$run" 2>/dev/null || true
  save_runs
  # scancel signals steps and this script one after the other: what looked like a drain may have
  # been one half of it.
  if [ "$code" -eq 75 ]; then sleep 1; fi
  if [ -n "$cancelled" ]; then exit 143; fi
  # A disk that stays full must not queue it for ever.
  if [ "$code" -eq 75 ] && [ "$restarts" -lt "${KERNELMILL_MAX_RESTARTS:-50}" ]; then
    say "queueing job $SLURM_JOB_ID again"
    scontrol requeue "$SLURM_JOB_ID"
  fi
  exit "$code"
}
