#!/usr/bin/env bash
# Builds build/package/kernelmill-VERSION-linux-x86_64.tar.gz, which runs on any x86-64 Linux at
# least as new as the one that built it (unpack it anywhere, run bin/kernelmill), and a .deb.
set -euo pipefail
cd "$(dirname "$0")/.."

launch/packages.sh package
cmake --preset default >&2
cmake --build --preset default --parallel "$(nproc)" --target kernelmill >&2
for generator in TGZ DEB; do
  cpack --config build/CPackConfig.cmake -G "$generator" -B build/package >&2
done
rm -rf build/package/_CPack_Packages
du -h build/package/kernelmill-*
