#!/usr/bin/env bash
# Installs a C compiler for Windows, mingw-w64, for the parts of the tests under Wine that
# cannot be written in Go: a driver and a COM server. Privately and without root.
#
#   hack/wine/install-mingw.sh DIR
#
# Afterwards DIR/bin/x86_64-w64-mingw32-gcc works. The packages are those of the Debian or
# Ubuntu that this machine runs, from the mirror it is configured for; nothing on the
# system is replaced.
set -euo pipefail

dir=${1:?usage: $0 DIR}
gcc=x86_64-w64-mingw32-gcc
[ -e "$dir/bin/$gcc" ] && exit 0
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A private apt: the system's sources, but its own lists and (empty) status.
mkdir -p "$work/lists/partial" "$work/debs/partial" "$work/root"
: >"$work/status"
apt=(apt-get -qq
  -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status"
  -o Dir::Cache::archives="$work/debs" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
  -o APT::Sandbox::User=)
"${apt[@]}" update
(cd "$work/debs" && "${apt[@]}" download gcc-mingw-w64-x86-64-win32 gcc-mingw-w64-x86-64-win32-runtime \
  binutils-mingw-w64-x86-64 mingw-w64-x86-64-dev mingw-w64-common libgmp10 libisl23 libmpc3 libmpfr6 libzstd1)
for deb in "$work"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --exclude='./usr/share/*doc*' --exclude='./usr/share/man*' \
    --exclude='./usr/share/locale*' --exclude='*/lto1*' --exclude='*/lto-wrapper*' --exclude='*lto-dump*'
done
cp -a "$work/root/." "$dir/"

mkdir -p "$dir/bin"
printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' \
  "$dir/usr/lib/x86_64-linux-gnu" "$dir/usr/bin/$gcc-win32" >"$dir/bin/$gcc"
chmod +x "$dir/bin/$gcc"
