#!/usr/bin/env bash
# The batch scripts of launch/tools/slurm against a Slurm of shell scripts: real processes and signals on
# this machine. Says nothing about a real Slurm beyond what those scripts copy from its manual.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

use_kernelmill
export PATH=$here/slurm:$PATH KERNELMILL=$kernelmill KERNELMILL_SLURM=$source/launch/tools/slurm
export KERNELMILL_CREDENTIALS=$scratch/credentials KERNELMILL_POLL_SECONDS=0.1
export KERNELMILL_LOCAL=$scratch/local KERNELMILL_SAVED=$scratch/saved
"$kernelmill" cluster init --dir "$KERNELMILL_CREDENTIALS" >/dev/null 2>&1 || true

start() { # SCRIPT CONFIG...
  fresh_state
  rm -rf "$KERNELMILL_LOCAL" "$KERNELMILL_SAVED"
  sbatch "$source/launch/tools/slurm/$1" "${@:2}" >"$scratch/job.log" 2>&1 &
  job=$!
}
ends() { local code=0; wait "$job" || code=$?; [ "$code" -eq "$1" ] || { echo "ended with $code"; false; }; }
signal_steps() { local task; while read -r task _; do kill "-$1" "$task" 2>/dev/null || true; done <"$FAKE_STATE/tasks"; }
ready() { until_true logged 'submit starts' && until_true times "$1" 'node .* starts'; }

if [ -n "$real" ]; then
  export FAKE_HOST=127.0.0.1
  start kernelmill.sbatch quickstart tasks.ids='["native/row_sum"]' tasks.group_size=2 tasks.max_turns=1
  check "the real program finishes a run" ends 0
  check "its runs are saved" test -d "$KERNELMILL_SAVED/runs/slurm-4711"
  check "no process is left" until_true nothing_left
  exit 0
fi

start kernelmill.sbatch quickstart a.b=1
ready 2
check "head and store are on this machine" logged "head starts: .*--listen 0.0.0.0:0 --root $KERNELMILL_LOCAL/runs"
for name in n0 n1; do
  check "$name joins the first machine" logged "node $name starts: .*--head n0:45678 .*--name $name"
done
check "the configuration is submitted as given" logged 'submit starts: submit quickstart a.b=1 run.name=slurm-4711'
touch "$FAKE_STATE/finish"
check "a finished run ends the job with 0" ends 0
check "nodes drain while the head is there" times 2 'ends 0 drained by SIGUSR1, head there'
check "the head is asked to end" logged 'head ends 0 SIGTERM'
check "no step was killed" refuses logged 'srun killed'
check "it is not queued again" refuses logged requeued
check "the runs are saved" test -e "$KERNELMILL_SAVED/runs/slurm-4711/finished"
check "the local copy is gone" refuses test -e "$KERNELMILL_LOCAL"
check "no process is left" until_true nothing_left

start kernelmill.sbatch quickstart
ready 2
signal_steps USR1
check "at the time limit nodes drain" until_true times 2 'drained by SIGUSR1, head there'
check "the job is queued again, after the head ended" until_true before 'head ends 0 SIGTERM' requeued
check "the next start resumes" until_true logged 'head resumes slurm-4711'
until_true times 4 'node .* starts'
touch "$FAKE_STATE/finish"
check "it ends when the run does" ends 0
check "the run was submitted once" times 1 'submit starts'
check "no process is left" until_true nothing_left

start kernelmill.sbatch quickstart
ready 2
echo 75 >"$FAKE_STATE/submit_code"
check "75 queues the job again" until_true logged 'job ends 75'
rm -f "$FAKE_STATE/submit_code"
until_true logged 'head resumes'
touch "$FAKE_STATE/finish"
check "and the run ends later" ends 0

start kernelmill.sbatch quickstart
ready 2
echo 2 >"$FAKE_STATE/submit_code"
check "a wrong configuration ends the job with 2" ends 2
check "and is not queued again" refuses logged requeued

FAKE_NODE_FAILS=1 start kernelmill.sbatch quickstart
check "nodes that fail end the job with their code" ends 2
check "and it is not queued again" refuses logged requeued

start kernelmill.sbatch quickstart
ready 2
signal_steps TERM
kill -TERM "$(cat "$FAKE_STATE/batch.pid")"
check "scancel ends the job" ends 143
check "and it is not queued again" refuses logged requeued
check "the runs are saved all the same" test -d "$KERNELMILL_SAVED/runs/slurm-4711"
check "no process is left" until_true nothing_left

start kernelmill_het.sbatch quickstart
ready 3
check "compilers are in the CPU group" logged 'node n0 starts: .*--gpus none --compilers 32 --name n0'
for name in n1 n2; do
  check "$name of the GPU group evaluates" logged "node $name starts: .*--head n0:45678 .*--gpus all --name $name"
done
touch "$FAKE_STATE/finish"
check "a heterogeneous job ends with its run" ends 0
check "no process is left" until_true nothing_left
