#!/usr/bin/env bash
# Installs a wheel where there is nothing but Debian, Python and pip, and runs the quickstart there.
#   launch/packaging/wheel_check.sh WHEEL [SUITE] [FOLDER]
# SUITE is bookworm; FOLDER (a new one below /tmp) keeps the tree of a minimal Debian and is not removed. As root, with
# debootstrap and bubblewrap. First without g++, where the command must say what is missing; then with it.
set -euo pipefail

wheel=$(realpath "${1:?usage: wheel_check.sh WHEEL [SUITE] [FOLDER]}")
suite=${2:-bookworm}
tree=${3:-$(mktemp -d /tmp/kernelmill-wheel-check.XXXXXX)}
mirror=${KERNELMILL_DEBIAN_MIRROR:-http://deb.debian.org/debian}

[ -e "$tree/usr/bin/python3" ] ||
  debootstrap --variant=minbase --include=python3,python3-pip,python3-venv,ca-certificates "$suite" "$tree" "$mirror" >"$tree.log" 2>&1 ||
  { tail -5 "$tree.log" >&2; exit 1; }

inside() { # a container without any package of the host: its own root, processes and devices
  bwrap --bind "$tree" / --dev /dev --proc /proc --tmpfs /tmp --ro-bind "$wheel" "/wheel/$(basename "$wheel")" \
    --unshare-pid --unshare-ipc --unshare-uts --clearenv --setenv PATH /usr/sbin:/usr/bin:/sbin:/bin \
    --setenv HOME /root --setenv LANG C.UTF-8 --chdir /root "$@"
}

mkdir -p "$tree/wheel"
echo "== $(sed -n 's/^PRETTY_NAME=//p' "$tree/etc/os-release"), $(inside python3 --version), glibc $(inside getconf GNU_LIBC_VERSION)"
inside rm -rf /root/venv /root/runs /root/.cache
inside python3 -m venv /root/venv
inside sh -c '/root/venv/bin/pip install --quiet --no-index --disable-pip-version-check /wheel/*.whl'
inside /root/venv/bin/kernelmill version
inside /root/venv/bin/python -c 'import kernelmill, kernelmill.program; print(kernelmill.program.find_program())'

quickstart=(/root/venv/bin/kernelmill run quickstart tasks.group_size=1 tasks.max_turns=2)
if ! inside test -x /usr/bin/g++; then
  echo "== without g++"
  if inside "${quickstart[@]}" run.name=without; then
    echo "wheel_check.sh: the run did not say that g++ is missing" >&2
    exit 1
  fi
  chroot "$tree" apt-get install -y -qq --no-install-recommends g++ >"$tree.log" 2>&1
fi
echo "== with $(inside g++ --version | head -1)"
inside "${quickstart[@]}" run.name=with
echo "== the client starts the program that it carries"
inside /root/venv/bin/python - <<'PYTHON'
import kernelmill
with kernelmill.serve("cpu", options=["--no-timing"]) as client:
    print(len(client.tasks()), "tasks at", client.url)
PYTHON
echo "all passed; the tree is $tree"
