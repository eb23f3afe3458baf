#!/bin/sh
# Builds the COM server: build.sh GCC OUTPUT
set -eu
cd "$(dirname "$0")"
exec "$1" -O1 -Wall -Wextra -Wno-unused-parameter -Werror -s -shared -o "$2" \
  server.c object.c wire.c winsimwmi.def -lole32 -loleaut32 -luuid
