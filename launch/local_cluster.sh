#!/usr/bin/env bash
# A cluster on this machine: a head and nodes, with mutual TLS, on a free port of the loopback.
#   launch/local_cluster.sh [-n NODES] [-c CREDENTIALS] [-r RUNS] [CONFIG... [key=value...]]
# With CONFIG it submits that, waits for the run and ends with its exit code; without, it serves until
# Ctrl-C. The first Ctrl-C lets nodes finish what they have, the second ends everything at once.
# Nodes share the machine's cores: this is for trying a cluster, not for measuring one.
# shellcheck disable=SC2317 # half of the functions are called by a trap alone
set -euo pipefail

usage() { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit "$1"; }

nodes=2 credentials='' runs=runs
while getopts n:c:r:h option; do
  case $option in
    n) nodes=$OPTARG ;;
    c) credentials=$OPTARG ;;
    r) runs=$OPTARG ;;
    h) usage 0 ;;
    *) usage 2 >&2 ;;
  esac
done
shift $((OPTIND - 1))
[[ $nodes =~ ^[1-9][0-9]?$ ]] || { echo "local_cluster.sh: -n takes 1 to 99, not $nodes" >&2; exit 2; }

here=$(cd "$(dirname "$0")" && pwd)
kernelmill=
for directory in ${KERNELMILL_BIN_DIR:+"$KERNELMILL_BIN_DIR"} "$here/../build/bin" "$here/../../../bin"; do
  if [ -x "$directory/kernelmill" ]; then kernelmill=$directory/kernelmill; break; fi
done
: "${kernelmill:=$(command -v kernelmill || true)}"
[ -n "$kernelmill" ] || { echo "local_cluster.sh: build kernelmill first: launch/quickstart.sh" >&2; exit 3; }

say() { echo "local_cluster.sh: $*" >&2; }

scratch=$(mktemp -d)
head='' submit='' address='' asked=0
members=()

# Whatever is started ends with us, even if we are killed. A session of its own keeps the terminal's
# Ctrl-C from it, so that nodes and head are ended in order.
keep=(setsid setpriv --pdeathsig TERM)

alive() { kill -0 "$1" 2>/dev/null; }
any_alive() {
  local process
  for process in "$@"; do if alive "$process"; then return 0; fi; done
  return 1
}
signal_all() { # SIGNAL PROCESS...
  local process
  for process in "${@:2}"; do kill "-$1" "$process" 2>/dev/null || true; done
}
# Waits for processes to end, for so many tenths of a second, or until the user asks again.
await() { # TENTHS PROCESS...
  local left=$1 before=$asked
  shift
  while [ "$left" -gt 0 ] && [ "$asked" -eq "$before" ] && any_alive "$@"; do
    sleep 0.1
    left=$((left - 1))
  done
}

# Nodes first: the head takes their last results.
end_all() {
  local code=$?
  trap - EXIT
  trap 'asked=$((asked + 1))' INT TERM
  if [ -n "$submit" ]; then signal_all TERM "$submit"; fi
  if [ "${#members[@]}" -gt 0 ]; then
    signal_all TERM "${members[@]}"
    await 1200 "${members[@]}"
    signal_all TERM "${members[@]}" # a second one ends a node at once
    await 50 "${members[@]}"
  fi
  if [ -n "$head" ]; then
    signal_all TERM "$head"
    await 300 "$head"
  fi
  signal_all KILL "${members[@]}" ${head:+"$head"} ${submit:+"$submit"}
  wait || true
  rm -rf "$scratch"
  exit "$code"
}
trap end_all EXIT
# Not in end_all: `wait` returns at once on these, and the script's last lines see to the rest.
trap 'asked=$((asked + 1))' INT TERM

if [ -z "$credentials" ]; then
  credentials=$scratch/credentials
  "$kernelmill" cluster init --dir "$credentials" >/dev/null 2>"$scratch/init" ||
    { cat "$scratch/init" >&2; exit 1; }
fi
export KERNELMILL_CREDENTIALS=$credentials

"${keep[@]}" "$kernelmill" head --listen 127.0.0.1:0 --root "$runs" >"$scratch/address" &
head=$!
until grep -q ':[0-9]' "$scratch/address"; do
  [ "$asked" -eq 0 ] || exit 130
  alive "$head" || { wait "$head" || exit $?; say "the head ended"; exit 1; }
  sleep 0.05
done
address=$(head -n 1 "$scratch/address")
export KERNELMILL_HEAD=$address
for ((i = 0; i < nodes; i++)); do
  "${keep[@]}" "$kernelmill" node --head "$address" --name "local$i" &
  members+=("$!")
done
say "head at $address, credentials in $credentials; Ctrl-C ends it"
if [ $# -gt 0 ]; then
  "${keep[@]}" "$kernelmill" submit "$@" --wait &
  submit=$!
else
  echo "$address"
  say "KERNELMILL_HEAD=$address KERNELMILL_CREDENTIALS=$credentials kernelmill submit quickstart --wait"
fi

# What ends first: the run or the head ends the cluster, a node does not unless it was the last.
running=("${members[@]}")
while [ "$asked" -eq 0 ]; do
  ended='' code=0
  wait -n -p ended "$head" ${submit:+"$submit"} "${running[@]}" || code=$?
  [ "$asked" -eq 0 ] || break
  if [ "$ended" = "$submit" ]; then exit "$code"; fi
  if [ "$ended" = "$head" ]; then
    say "the head ended with $code"
    [ "$code" -ne 0 ] || code=1
    exit "$code"
  fi
  say "a node ended with $code"
  still=()
  for process in "${running[@]}"; do [ "$process" = "$ended" ] || still+=("$process"); done
  running=("${still[@]}")
  [ "${#running[@]}" -gt 0 ] || { say "no node is left"; exit 1; }
done
exit 130
