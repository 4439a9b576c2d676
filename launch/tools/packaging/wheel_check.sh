#!/usr/bin/env bash
# Installs a wheel where there is nothing but a Linux, Python and pip, and runs the quickstart there.
#   launch/tools/packaging/wheel_check.sh WHEEL [SUITE|here] [FOLDER]
# SUITE is bookworm, or another suite of Debian or Ubuntu (noble): FOLDER (a new one below /tmp) becomes a minimal tree of it
# and is not removed. As root, with debootstrap and bubblewrap. First without g++, where the command must say what is missing; then with it.
# `here` takes this machine for the tree, and FOLDER for its home: for a container or a host of another distribution that
# has Python, pip and g++.
set -euo pipefail

wheel=$(realpath "${1:?usage: wheel_check.sh WHEEL [SUITE|here] [FOLDER]}")
suite=${2:-bookworm}
tree=${3:-$(mktemp -d /tmp/kernelmill-wheel-check.XXXXXX)}
debian=${KERNELMILL_DEBIAN_MIRROR:-http://deb.debian.org/debian}
ubuntu=${KERNELMILL_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
path=/usr/sbin:/usr/bin:/sbin:/bin

# Debian has no package of Ubuntu's keys: they come from Ubuntu's own, which is this one or is refused.
ubuntu_keys() {
  local package=ubuntu-keyring_2023.11.28.1_all.deb
  curl -fsS "$ubuntu/pool/main/u/ubuntu-keyring/$package" -o "$tree.keys.deb" &&
    echo "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8  $tree.keys.deb" | sha256sum --check --quiet &&
    dpkg-deb --fsys-tarfile "$tree.keys.deb" | tar -xO ./usr/share/keyrings/ubuntu-archive-keyring.gpg >"$tree.keys.gpg"
}

strap() { # the minimal tree, by a script of debootstrap's that is older than some suites
  local options=(--variant=minbase "--include=python3,python3-pip,python3-venv,ca-certificates")
  case $suite in
    noble | plucky | questing)
      ubuntu_keys && debootstrap "${options[@]}" --components=main,universe --keyring="$tree.keys.gpg" "$suite" "$tree" "$ubuntu" gutsy ;;
    *) debootstrap "${options[@]}" "$suite" "$tree" "$debian" ;;
  esac
}

if [ "$suite" = here ]; then
  mkdir -p "$tree"
  tree=$(realpath "$tree") home=$tree system=
  given=$wheel
  inside() { (cd "$tree" && env -i PATH=$path HOME="$tree" LANG=C.UTF-8 "$@"); }
else
  [ -e "$tree/usr/bin/python3" ] || strap >"$tree.log" 2>&1 || { tail -5 "$tree.log" >&2; exit 1; }
  mkdir -p "$tree/wheel"
  home=/root system=$tree
  given=/wheel/$(basename "$wheel")
  inside() { # a container without any package of the host: its own root, processes and devices
    bwrap --bind "$tree" / --dev /dev --proc /proc --tmpfs /tmp --ro-bind "$wheel" "$given" \
      --unshare-pid --unshare-ipc --unshare-uts --clearenv --setenv PATH $path \
      --setenv HOME /root --setenv LANG C.UTF-8 --chdir /root "$@"
  }
fi

since() { echo "$(($(date +%s%N) - $1))" | awk '{printf "%.1f s", $1 / 1e9}'; }

echo "== $(sed -n 's/^PRETTY_NAME=//p' "$system/etc/os-release"), $(inside python3 --version), $(inside getconf GNU_LIBC_VERSION)"
inside rm -rf "$home/venv" "$home/runs" "$home/.cache"
begin=$(date +%s%N)
inside python3 -m venv "$home/venv"
inside "$home/venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$given"
echo "== installed in $(since "$begin"): a wheel of $(du -h "$wheel" | cut -f1), $(inside du -sh "$home/venv" | cut -f1) unpacked with its environment"
inside "$home/venv/bin/kernelmill" version
inside "$home/venv/bin/python" -c 'import kernelmill, kernelmill.program; print(kernelmill.program.find_program())'

quickstart=("$home/venv/bin/kernelmill" run quickstart tasks.group_size=1 tasks.max_turns=2)
if ! inside test -x /usr/bin/g++; then
  echo "== without g++"
  if inside "${quickstart[@]}" run.name=without; then
    echo "wheel_check.sh: the run did not say that g++ is missing" >&2
    exit 1
  fi
  [ "$suite" != here ] || exit 1
  chroot "$tree" apt-get install -y -qq --no-install-recommends g++ >"$tree.log" 2>&1
fi
echo "== with $(inside g++ --version | head -1)"
begin=$(date +%s%N)
inside "${quickstart[@]}" run.name=with
echo "== that took $(since "$begin")"
echo "== the client starts the program that it carries"
inside "$home/venv/bin/python" - <<'PYTHON'
import kernelmill
with kernelmill.serve("cpu", options=["--no-timing"]) as client:
    print(len(client.tasks()), "tasks at", client.url)
PYTHON
echo "all passed; the tree is $tree"
