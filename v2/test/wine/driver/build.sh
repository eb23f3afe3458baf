#!/bin/sh
# Builds the driver: build.sh GCC OUTPUT
set -eu
cd "$(dirname "$0")"
exec "$1" -O1 -Wall -Wextra -Wno-unused-parameter -Werror -I "$(dirname "$1")/../usr/x86_64-w64-mingw32/include/ddk" \
  -s -shared -nostdlib -nostartfiles -Wl,--subsystem,native -Wl,--entry,DriverEntry -o "$2" winsim.c queue.c -lntoskrnl -lhal
