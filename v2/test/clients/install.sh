#!/usr/bin/env bash
# Installs gRPC for Node.js and for Python, for the tests of clients, privately and without root.
#
#   v2/test/clients/install.sh DIR
#
# Afterwards DIR/bin/node and DIR/bin/python3 find it. The packages of package-lock.json come from the registry that
# npm is configured for; Node.js and npm must be there. Where the system's Python has gRPC, that one is used.
# Otherwise the packages of the Debian or Ubuntu that this machine runs are unpacked into DIR, from the mirror it is
# configured for; nothing on the system is replaced.
set -euo pipefail

dir=${1:?usage: $0 DIR}
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)
source=$(cd "$(dirname "$0")" && pwd)
exec 9>"$dir.lock" && flock 9 # others may do the same now

# start NAME SCRIPT makes DIR/bin/NAME a script.
start() {
  printf '#!/bin/sh\n%s\n' "$2" >"$dir/bin/$1.new"
  chmod +x "$dir/bin/$1.new"
  mv "$dir/bin/$1.new" "$dir/bin/$1"
}

fail() {
  echo "$0: $1" >&2
  exit 1
}

node_works() { "$dir/bin/node" -e 'require("@grpc/grpc-js")' 2>/dev/null; }
if ! node_works || ! cmp -s "$source/package-lock.json" "$dir/package-lock.json"; then
  command -v node >/dev/null && command -v npm >/dev/null || fail "there is no Node.js, or no npm; install both"
  cp "$source/package.json" "$source/package-lock.json" "$dir/"
  (cd "$dir" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund)
  start node "NODE_PATH='$dir/node_modules' exec '$(command -v node)' \"\$@\""
  node_works || fail "$(node --version) of Node.js cannot load grpc-js"
fi

python_works() { "$1" -c 'import grpc.aio' 2>/dev/null; }
python_works "$dir/bin/python3" && exit 0
for python in "$(command -v python3)" /usr/bin/python3; do
  if python_works "$python"; then
    start python3 "exec '$python' \"\$@\""
    exit 0
  fi
done
command -v apt-get >/dev/null || fail "there is neither gRPC for Python nor apt; install grpcio by the means of this system"
# What the system has of the libraries, and of Python, is of the same release. Another Python cannot load them.
"$source/../../../tools/debian/unpack.sh" --with-missing "$dir" python3-grpcio
python=/usr/bin/python3
[ -x "$python" ] || python=$dir/usr/bin/python3
libs=$(find "$dir/usr" -type f -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd :)
start python3 "LD_LIBRARY_PATH='$libs' PYTHONPATH='$dir/usr/lib/python3/dist-packages' exec '$python' \"\$@\""
python_works "$dir/bin/python3" || fail "$python cannot load grpc of the package python3-grpcio"
