#!/usr/bin/env bash
# Makes a release and its image twice and compares the files. The second time it uses a copy of the source in another
# directory, without git and, if FRESH is set, with an empty Go build cache. Then it looks for the
# version in the programs, and unpacks the image, which has no base, so that it works without a registry.
#
#   tools/release/verify.sh VERSION [PLATFORMS]
set -euo pipefail
shopt -s nullglob # a platform may be left out
cd "$(dirname "$0")/../.."

version=${1:?usage: $0 VERSION [PLATFORMS]}
# UNRELEASED: this runs on any commit, and the copy has no tags.
args=(VERSION="$version" UNRELEASED=1 IMAGE_BASE= COMMIT="$(git rev-parse HEAD)" SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)")
[ -z "${2:-}" ] || args+=(RELEASE_PLATFORMS="$2")
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

make --no-print-directory release "${args[@]}" DIST="$work/once"
make --no-print-directory image "${args[@]}" DIST="$work/once"
mkdir "$work/source"
git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- --ignore-failed-read 2>/dev/null | tar -x -C "$work/source"
[ -z "${FRESH:-}" ] || export GOCACHE="$work/cache"
make --no-print-directory -C "$work/source" release "${args[@]}" DIST="$work/again"
make --no-print-directory -C "$work/source" image "${args[@]}" DIST="$work/again"

diff -r "$work/once" "$work/again"
(cd "$work/again" && sha256sum --check SHA256SUMS)
for dir in "$work"/again/build/linux_*; do
  archive=csi-proxy_${version}_${dir##*/}
  tar -xzf "$work/again/$archive.tar.gz" -C "$work"
  for program in "$dir"/*; do cmp "$program" "$work/$archive/${program##*/}"; done
  ls "$work/$archive"/{CHANGELOG.md,LICENSE,README.md,THIRD_PARTY_NOTICES}
done

# As Windows stores texts: two bytes each.
wide=$(printf %s "$version" | sed 's/./[&]\\x00/g')
for program in "$work"/again/build/windows_*/*.exe; do
  [ "${program##*/}" != csi-proxy-verify.exe ] || continue # a test binary has no resources
  LC_ALL=C grep -aqP "$wide" "$program" || { echo "$program has no version resource" >&2; exit 1; }
done
for program in "$work"/again/build/"$(go env GOOS)_$(go env GOARCH)"/*; do
  "$program" --version | grep -F " $version (commit "
done
"$work/again/plugin/$(go env GOOS)_$(go env GOARCH)/kubectl-csi_proxy" version | grep -F " $version"

image=$work/again/csi-proxy_${version}_image.tar
bin/tools/crane validate --tarball "$image"
mkdir "$work/image"
bin/tools/crane export - - <"$image" | tar -x --warning=no-unknown-keyword -C "$work/image"
for file in "$work"/image/Files/*.exe; do
  cmp "$file" "$work/again/build/windows_amd64/${file##*/}"
done
ls "$work"/image/Files/{csi-proxy.exe,csi-proxyctl.exe,LICENSE,THIRD_PARTY_NOTICES}
