#!/bin/sh
# go test starts this with the test binary that it has built for Windows, in the directory of its package. It
# keeps the binary for later, under a name that no other package has.
set -eu
mv "$1" "$KEEP_IN/$(pwd | sed "s|^$KEEP_BELOW/||; s|/|_|g").test.exe"
