#!/usr/bin/env bash
# Installs Wine 10 for the tests of the Windows binaries, privately and without root.
#
#   hack/wine/install.sh DIR
#
# Afterwards DIR/bin/wine and DIR/bin/wineserver work. Debian 12's own Wine 8 cannot start
# programs of current Go, so the packages of Debian 13 are unpacked into DIR and made to
# use the C library that comes with them; nothing on the system is replaced. The mirror is
# the one this machine is configured for.
set -euo pipefail

dir=${1:?usage: $0 DIR}
[ -e "$dir/bin/wine" ] && exit 0
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A private apt: its own sources, lists and (empty) status.
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
  grep -oE 'https?://[^ ]+/debian/?( |$)' | grep -v snapshot | head -n 1 | tr -d ' ')
[ -n "$mirror" ] || { echo "$0: no Debian mirror is configured on this machine" >&2; exit 1; }
mkdir -p "$work/lists/partial" "$work/debs/partial" "$work/root"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$work/sources.list"
: >"$work/status"
apt=(apt-get -qq
  -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status"
  -o Dir::Cache::archives="$work/debs" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
  -o APT::Sandbox::User=)
"${apt[@]}" update
(cd "$work/debs" && "${apt[@]}" download libwine wine64 libc6 libgcc-s1 libunwind8 liblzma5 zlib1g libz-mingw-w64 \
  patchelf libstdc++6)
for deb in "$work"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --exclude='*/i386-windows*' --exclude='./usr/share/doc*' --exclude='./usr/share/man*'
done

libs=usr/lib/x86_64-linux-gnu
loader=$libs/ld-linux-x86-64.so.2
# patchelf itself needs the unpacked libraries, too.
patchelf() { "$work/root/$loader" --library-path "$work/root/$libs" "$work/root/usr/bin/patchelf" "$@"; }
for binary in wine64 wineserver64; do
  patchelf --set-interpreter "$dir/$loader" --force-rpath --set-rpath "$dir/$libs" "$work/root/usr/lib/wine/$binary"
done
# The packaged wineserver is a script that starts the system's Wine.
ln -sf wineserver64 "$work/root/usr/lib/wine/wineserver"
# Wine looks for its data relative to itself, in share/wine/wine.
ln -sfn . "$work/root/usr/share/wine/wine"

# user32.dll imports zlib1.dll, which the package's postinst would make: mingw's zlib
# marked as one of Wine's own.
zlib=$(find "$work/root" -name zlib1.dll -path '*x86_64*' | head -n 1)
{
  head -c 64 "$zlib"
  printf 'Wine builtin DLL'
  head -c 16 /dev/zero
  tail -c +97 "$zlib"
} >"$work/zlib1.dll"
mv "$work/zlib1.dll" "$work/root/$libs/wine/x86_64-windows/zlib1.dll"

cp -a "$work/root/." "$dir/"
mkdir -p "$dir/bin"
# Wine finds its parts by the path it was started under, so no symbolic links here.
for name in wine:wine64 wineserver:wineserver64; do
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$dir/usr/lib/wine/${name#*:}" >"$dir/bin/${name%:*}"
  chmod +x "$dir/bin/${name%:*}"
done
