#!/usr/bin/env bash
# Installs a C compiler for Windows, mingw-w64, for the parts of the tests under Wine that
# cannot be written in Go: a driver and a COM server. Privately and without root.
#
#   tools/wine/install-mingw.sh DIR
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

"$(dirname "$0")/../debian/unpack.sh" "$dir" gcc-mingw-w64-x86-64-win32 gcc-mingw-w64-x86-64-win32-runtime \
  binutils-mingw-w64-x86-64 mingw-w64-x86-64-dev mingw-w64-common libgmp10 libisl23 libmpc3 libmpfr6 libzstd1
# Link-time optimization is large and unused.
find "$dir" \( -name 'lto1*' -o -name 'lto-wrapper*' -o -name '*lto-dump*' \) -delete

mkdir -p "$dir/bin"
printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' \
  "$dir/usr/lib/x86_64-linux-gnu" "$dir/usr/bin/$gcc-win32" >"$dir/bin/$gcc"
chmod +x "$dir/bin/$gcc"
