#!/usr/bin/env bash
# Runs ruff, of one version for all: launch/tools/ruff.sh check .
# The first call installs it from PyPI below ~/.cache. Exit code 77: it is not there and cannot be installed.
set -euo pipefail

version=0.17.6
folder=${XDG_CACHE_HOME:-$HOME/.cache}/kernelmill/ruff-$version
if [ ! -x "$folder/bin/ruff" ]; then
  mkdir -p "$(dirname "$folder")"
  made=$(mktemp -d "$folder.XXXXXX") # of its own, so that two first calls do not meet
  trap 'rm -rf "$made"' EXIT
  if ! { python3 -m venv "$made" && "$made/bin/pip" install --quiet --disable-pip-version-check "ruff==$version"; } >&2; then
    echo "ruff.sh: failed to install ruff $version from PyPI; next: go online and call launch/packages.sh test" >&2
    exit 77
  fi
  mv -T "$made" "$folder" 2>/dev/null || [ -x "$folder/bin/ruff" ]
  rm -rf "$made"
  trap - EXIT
fi
exec "$folder/bin/ruff" "$@"
