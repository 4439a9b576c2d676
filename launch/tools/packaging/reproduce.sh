#!/usr/bin/env bash
# Shows that one commit gives one tarball and one wheel: builds them twice, in two folders of different names and
# lengths, from clean checkouts, and compares the bytes.
#   launch/tools/packaging/reproduce.sh [--ccache] [COMMIT] [FOLDER]
# COMMIT is HEAD; FOLDER (a new one below /tmp) keeps both trees and is not removed. Compilers run for
# both builds, which takes minutes; --ccache lets a cache answer, and then only linking and packing
# are shown.
set -euo pipefail
cd "$(dirname "$0")/../../.."

cached=no
if [ "${1:-}" = --ccache ]; then cached=yes; shift; fi
commit=$(git rev-parse --verify "${1:-HEAD}^{commit}")
place=${2:-$(mktemp -d /tmp/kernelmill-reproduce.XXXXXX)}
[ "$cached" = yes ] || export CCACHE_DISABLE=1

build() { # FOLDER UMASK ZONE: what may differ between two builders does
  git -c advice.detachedHead=false clone --quiet --no-hardlinks . "$1" >&2
  git -C "$1" -c advice.detachedHead=false checkout --quiet "$commit" >&2
  (umask "$2" && cd "$1" && TZ=$3 LC_ALL=C.UTF-8 launch/package.sh --tarball >&2)
}

mkdir -p "$place"
first=$place/a
second=$place/another/place/of-a-longer-name
build "$first" 022 UTC
build "$second" 077 Asia/Tokyo
for file in "$first"/build/package/*.tar.gz "$first"/build/package/*.whl; do
  other=$second/build/package/$(basename "$file")
  sha256sum "$file" "$other"
  if ! cmp "$file" "$other"; then
    echo "they differ; files that do:" >&2
    diff -rq "$first/build-package/stage" "$second/build-package/stage" >&2 || true
    exit 1
  fi
  echo "equal: $(stat -c %s "$file") bytes of $commit, compilers ran: $([ "$cached" = yes ] && echo "not for all" || echo twice)"
done
