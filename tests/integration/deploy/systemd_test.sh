#!/usr/bin/env bash
# The units of launch/tools/systemd: systemd's own parser finds nothing wrong, and none is more exposed than
# it was. No service is started.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

fresh_state
cd "$scratch"
for unit in "$source"/launch/tools/systemd/*.service; do
  # verify wants the programs to be there; Kernelmill need not be installed.
  sed 's|/usr/bin/kernelmill |/usr/bin/true |' "$unit" >"$(basename "$unit")"
done

quiet_verify() {
  systemd-analyze verify --man=no --recursive-errors=no "$1" >"$scratch/said" 2>&1 || { cat "$scratch/said"; return 1; }
  if [ -s "$scratch/said" ]; then cat "$scratch/said"; return 1; fi
}
exposure() { # UNIT AT_MOST, in tenths
  systemd-analyze security --offline=true --no-pager --threshold="$2" "$1" 2>&1 | grep 'exposure level'
  systemd-analyze security --offline=true --no-pager --threshold="$2" "$1" >/dev/null 2>&1
}

for name in head node; do
  check "$name: systemd reads every line" quiet_verify "./kernelmill-$name.service"
  check "$name: stops by SIGTERM to its main process alone" grep -qx 'KillMode=mixed' "kernelmill-$name.service"
  check "$name: takes its own copy of the credentials" \
    grep -q "^ExecStartPre=.*install -m 0600 -t %t/kernelmill-$name " "kernelmill-$name.service"
  check "$name: its arguments are those of the contract" \
    grep -qE "^ExecStart=/usr/bin/true $name --(listen|head) " "kernelmill-$name.service"
done
sed 's/^KillMode=/KillMood=/' kernelmill-head.service >wrong.service
check "a line that systemd does not know would be found" refuses quiet_verify ./wrong.service
check "the head is no more exposed than 1.5" exposure ./kernelmill-head.service 15
check "the node is no more exposed than 3.9" exposure ./kernelmill-node.service 39
