#!/usr/bin/env bash
# Writes the version resource of each program, which Windows shows as the file's properties, with go-winres. The Go linker
# picks it up by its name, in the directory of the program's main package.
#
#   tools/release/resources.sh GO-WINRES VERSION COMMIT DATE DIRECTORY...
set -euo pipefail

winres=${1:?usage: $0 GO-WINRES VERSION COMMIT DATE DIRECTORY...} version=$2 commit=$3 date=$4
shift 4
# What Windows compares. It is zero for a build that is not a release, which so is older than any release.
numbers=$(sed -nE 's/^v?([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}).*/\1.0/p' <<<"$version")
json=$(mktemp)
trap 'rm -f "$json"' EXIT
for dir; do
  program=${dir##*/}
  case $program in
    csi-proxy) description='Storage operations of this node, for CSI drivers' ;;
    csi-proxyctl) description='Command line of CSI Proxy' ;;
    csi-proxy-sim) description='An emulated Windows storage node' ;;
    *) echo "$program: the program has no description; add it to $0" >&2 && exit 1 ;;
  esac
  # 0409 is US English. Explorer does not show the timestamp, so the comment has it too.
  cat >"$json" <<EOF
{"RT_VERSION": {"#1": {"0409": {
  "fixed": {"file_version": "$numbers", "product_version": "$numbers", "timestamp": "$date"},
  "info": {"0409": {
    "ProductName": "CSI Proxy", "FileDescription": "$description", "InternalName": "$program", "OriginalFilename": "$program.exe",
    "FileVersion": "$version", "ProductVersion": "$version", "LegalCopyright": "Apache License 2.0",
    "Comments": "${commit:+$commit }$date"
  }}
}}}}
EOF
  "$winres" make --in "$json" --arch amd64,arm64 --out "$dir/version"
done
