#!/usr/bin/env bash
# Installs Chromium for the tests of pages, privately and without root.
#
#   tools/chromium/install.sh DIR
#
# Afterwards DIR/bin/chromium works. Where the system has Chromium, it starts that one. Otherwise the
# packages of the Debian that this machine runs are unpacked into DIR, from the mirror it is
# configured for; nothing on the system is replaced.
set -euo pipefail

dir=${1:?usage: $0 DIR}
"$dir/bin/chromium" --version >/dev/null 2>&1 && exit 0
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)
exec 9>"$dir.lock" && flock 9 # others may do the same now
"$dir/bin/chromium" --version >/dev/null 2>&1 && exit 0

# start SCRIPT makes DIR/bin/chromium a script.
start() {
  printf '#!/bin/sh\n%s\n' "$1" >"$dir/bin/chromium.new"
  chmod +x "$dir/bin/chromium.new"
  mv "$dir/bin/chromium.new" "$dir/bin/chromium"
}

for name in chromium chromium-browser google-chrome; do
  installed=$(command -v "$name") || continue
  if "$installed" --version >/dev/null 2>&1; then # Ubuntu's package without snap only prints advice
    start "exec '$installed' \"\$@\""
    exit 0
  fi
done
command -v apt-get >/dev/null || {
  echo "$0: there is neither Chromium nor apt; install Chromium by the means of this system" >&2
  exit 1
}

# What the system has of the libraries is of the same release.
"$(dirname "$0")/../debian/unpack.sh" --with-missing "$dir" chromium fonts-liberation fonts-roboto-unhinted
libs=$(find "$dir" -type f -name '*.so*' -printf '%h\n' | sort -u | paste -sd :)

# Only the unpacked fonts, so that pages look the same everywhere.
cat >"$dir/fonts.conf" <<EOT
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>$dir/usr/share/fonts</dir>
  <cachedir>$dir/font-cache</cachedir>
  <alias><family>sans-serif</family><prefer><family>Roboto</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>Liberation Mono</family></prefer></alias>
</fontconfig>
EOT
start "LD_LIBRARY_PATH='$libs' FONTCONFIG_FILE='$dir/fonts.conf' exec '$dir/usr/lib/chromium/chromium' \"\$@\""
"$dir/bin/chromium" --version
