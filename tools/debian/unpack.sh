#!/usr/bin/env bash
# Unpacks packages of the Debian or Ubuntu that this machine runs into a directory, from the mirror
# it is configured for. It needs no root, and nothing on the system is replaced.
#
#   tools/debian/unpack.sh [--with-dependencies | --with-missing] DIR PACKAGE...
#
# With dependencies the directory gets all the packages need, down to the C library. With missing ones
# it gets what is not installed on this machine.
set -euo pipefail

get=download
installed=/dev/null
if [ "${1:-}" = --with-dependencies ] || [ "${1:-}" = --with-missing ]; then
  get="install --yes --download-only --no-install-recommends"
  [ "$1" = --with-dependencies ] || installed=/var/lib/dpkg/status
  shift
fi
dir=${1:?usage: $0 [--with-dependencies | --with-missing] DIR PACKAGE...}
shift
mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A private apt: the system's sources, but its own lists and status. Nothing is installed by
# it, so it need not lock what belongs to root.
mkdir -p "$work/lists/partial" "$work/debs/partial" "$work/root"
cp "$installed" "$work/status"
apt=(apt-get -qq
  -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status"
  -o Dir::Cache::archives="$work/debs" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
  -o APT::Sandbox::User= -o Debug::NoLocking=true)
"${apt[@]}" update
# shellcheck disable=SC2086 # several words
(cd "$work/debs" && "${apt[@]}" $get "$@")
for deb in "$work"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --exclude='./usr/share/*doc*' --exclude='./usr/share/man*' \
    --exclude='./usr/share/locale*'
done
cp -a "$work/root/." "$dir/"
