#!/usr/bin/env bash
# Builds build/package/kernelmill-VERSION-linux-x86_64.tar.gz, which runs on any x86-64 Linux at
# least as new as the one that built it (unpack it anywhere, run bin/kernelmill), a wheel of the same
# files and the Python client (`pip install FILE` is the whole set-up), and a .deb.
#   launch/package.sh [--tarball]     --tarball: without the .deb
# One commit gives one tarball and one wheel, byte for byte, wherever it is built with the same Debian packages;
# launch/tools/packaging/reproduce.sh shows it. What is packed has passed launch/tools/packaging/check.py.
set -euo pipefail
cd "$(dirname "$0")/.."

launch/packages.sh package
# Of the commit, not of today: it is in the archives and in the list of what they hold.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

cmake --preset package >&2
cmake --build --preset package --parallel "$(nproc)" >&2

version=$(sed -nE 's/^CMAKE_PROJECT_VERSION:[^=]*=//p' build-package/CMakeCache.txt)
name=kernelmill-$version-linux-x86_64
stage=build-package/stage/$name
rm -rf build-package/stage
for component in programs libraries; do
  cmake --install build-package --strip --component "$component" --prefix "$PWD/$stage" >&2
done
launch/tools/packaging/same_code.sh >"$stage/share/kernelmill/gpu_check/same_code.txt"
python3 -B launch/tools/packaging/sbom.py "$stage" --version "$version" \
  --out "$stage/share/doc/kernelmill/sbom.spdx.json"
python3 -B launch/tools/packaging/check.py "$stage" >build-package/check.txt || { cat build-package/check.txt >&2; exit 1; }

mkdir -p build/package
# Reproducible: sorted, one time, no owner, and gzip without a name and a time of its own.
tar --create --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX --directory build-package/stage "$name" | gzip --no-name -9 >"build/package/$name.tar.gz"
python3 -B launch/tools/packaging/wheel.py "$stage" --out build/package >&2
if [ "${1:-}" != --tarball ]; then
  cpack --config build-package/CPackConfig.cmake -G DEB -B build/package >&2
  rm -rf build/package/_CPack_Packages
fi
(cd build/package && sha256sum "$name".* kernelmill-"$version"-*.whl)
du -h build/package/kernelmill-*
