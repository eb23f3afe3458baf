#!/usr/bin/env bash
# Installs osslsigncode, which signs programs for Windows, privately and without root.
#
#   tools/release/install-osslsigncode.sh DIR
#
# Afterwards DIR/bin/osslsigncode works. Where the system has it, it starts that one. Otherwise the
# packages of the Debian or Ubuntu that this machine runs are unpacked into DIR, from the mirror it
# is configured for; nothing on the system is replaced.
set -euo pipefail

dir=${1:?usage: $0 DIR}
"$dir/bin/osslsigncode" --version >/dev/null 2>&1 && exit 0
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)

# start COMMAND... makes DIR/bin/osslsigncode start a command.
start() {
  printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$dir/bin/osslsigncode.new"
  chmod +x "$dir/bin/osslsigncode.new"
  mv "$dir/bin/osslsigncode.new" "$dir/bin/osslsigncode"
}

if installed=$(command -v osslsigncode); then
  start "$installed"
  exit 0
fi
command -v apt-get >/dev/null || {
  echo "$0: there is neither osslsigncode nor apt; install it by the means of this system" >&2
  exit 1
}
# With all it depends on, the C library included: what the machine has of it may be too old or new.
"$(dirname "$0")/../debian/unpack.sh" --with-dependencies "$dir" osslsigncode
loader=$(find "$dir" -type f -name 'ld-linux*' | head -n 1)
libs=$(find "$dir" -type f -name '*.so.*' -printf '%h\n' | sort -u | paste -sd :)
start "'$loader'" --library-path "'$libs'" "'$dir/usr/bin/osslsigncode'"
"$dir/bin/osslsigncode" --version
