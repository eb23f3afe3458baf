#!/usr/bin/env bash
# Installs Wine 10 for the tests of the Windows binaries, privately and without root.
#
#   tools/wine/install.sh DIR
#
# Afterwards DIR/bin/wine and DIR/bin/wineserver work. Where the system has Wine 9 or newer,
# as Debian 13 and Ubuntu 24.04 do once their package wine64 is installed, they start that
# one. Otherwise, since Debian 12's own Wine 8 cannot start programs of current Go, the
# packages of Debian 13 are unpacked into DIR and made to use the C library that comes with
# them; nothing on the system is replaced. The mirror is the one this machine is configured
# for.
set -euo pipefail

dir=${1:?usage: $0 DIR}
"$dir/bin/wine" --version >/dev/null 2>&1 && exit 0
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)

# start NAME PROGRAM makes DIR/bin/NAME start a program. Wine finds its parts by the path it
# was started under, so it is not a symbolic link.
start() {
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$2" >"$dir/bin/$1.new"
  chmod +x "$dir/bin/$1.new"
  mv "$dir/bin/$1.new" "$dir/bin/$1"
}

# The system's own Wine, if it will do. Debian keeps the server out of PATH.
for wine in wine wine64 wine-stable wine64-stable; do
  wine=$(command -v "$wine") || continue
  version=$("$wine" --version 2>/dev/null | sed -nE 's/^wine-([0-9]+)\..*/\1/p') || continue
  server=$(PATH="$PATH:/usr/lib/wine:$(dirname "$(readlink -f "$wine")")" command -v wineserver) || continue
  if [ "${version:-0}" -ge 9 ]; then
    start wineserver "$server"
    start wine "$wine"
    exit 0
  fi
done

command -v apt-get >/dev/null || {
  echo "$0: there is neither Wine 9 or newer nor apt; install Wine by the means of this system" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A private apt: its own sources, lists and (empty) status.
mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
  grep -v '^[[:space:]]*#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | grep -v snapshot | head -n 1 | tr -d ' ') || true
[ -n "$mirror" ] || {
  echo "$0: there is no Wine 9 or newer, and no Debian mirror in /etc/apt to get one from; install the package wine64" >&2
  exit 1
}
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
start wineserver "$dir/usr/lib/wine/wineserver64"
start wine "$dir/usr/lib/wine/wine64"
