#!/usr/bin/env bash
# Makes a release in a scratch directory, as docs/releasing.md says, and uses it as those do who have no checkout. The commands
# that documents show are taken from them.
#
#   tools/release/adopt.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
part() { printf '%4d s: %s\n' "$SECONDS" "$*"; }
# The indented lines of a document that begin so.
shown() { grep -hE "^    $1" "$root/$2" || { echo "$2 has no line with $1" >&2; exit 1; }; }
mapfile -t versions <"$root/tools/release/versions.txt"
version=$(sed -n 's@^v2/cmd @@p' "$root/tools/release/versions.txt")
ours=github.com/kubernetes-csi/csi-proxy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

part "what is here, with its changes, becomes $version"
mkdir "$work/source"
git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- --ignore-failed-read 2>/dev/null | tar -x -C "$work/source"
cd "$work/source"
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@example.com GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.com
sed -i "s/^## \[Unreleased\]/## [${version#v}] - 2026-11-15/" CHANGELOG.md
git init --quiet
git add .
git commit --quiet --message "a release"
make --no-print-directory tag VERSION="$version"
git -c advice.detachedHead=false checkout --quiet "$version"
dist=$work/dist
make --no-print-directory release VERSION="$version" DIST="$dist" RELEASE_PLATFORMS="windows/amd64 linux/amd64" PLUGIN_PLATFORMS=
cd "$dist"
sha256sum --quiet --check SHA256SUMS
for line in "${versions[@]}"; do # what it says of itself: all modules, and in the bill those of the programs
	[ "$(git -C "$work/source" rev-list -n 1 "$version")" = "$(git -C "$work/source" rev-list -n 1 "$(sed 's@^v2 @@; s@ @/@' <<<"$line")")" ]
	case $line in mounter*|kubectl*) ;; *) grep -qF "pkg:golang/$ours/${line/ /@}\"" "csi-proxy_${version}.spdx.json" ;; esac
done
tar -xzf "csi-proxy_${version}_goproxy.tar.gz" -C "$work"
cd "$root"

part "what README.md says to operators"
GOWORK=off GOFLAGS=-trimpath go -C tools test -count=1 -run '^TestHelmInstall$' ./manifests -args -dist="$dist"
go test -tags="wine,${TAGS:-}" -count=1 -v -run '^TestReadme$' ./v2/test/wine/suite -args -release="$dist"

# A module cache of its own, so that unreleased versions are not in that of this user, which has the modules of others.
part "a driver gets the mounter"
cache=$(go env GOMODCACHE)
for dir in . cache/download; do
	mkdir -p "$work/modules/$dir/github.com"
	find "$cache/$dir" -mindepth 1 -maxdepth 1 ! -name cache ! -name github.com -exec ln -s -t "$work/modules/$dir" {} +
	find "$cache/$dir/github.com" -mindepth 1 -maxdepth 1 ! -name kubernetes-csi -exec ln -s -t "$work/modules/$dir/github.com" {} +
done
go test -c -tags="drivers,${TAGS:-}" -o "$work/ported.test" ./v2/test/drivers/ported
machines="file://$cache/cache/download,$(go env GOPROXY)"
cd "$work"
export GOPROXY=$machines
eval "$(shown export docs/releasing.md)"
export GODEBUG=goindex=0 # which is kept by version, and ours change
export GOMODCACHE=$work/modules GOWORK=off GOFLAGS="${GOFLAGS:--trimpath} -modcacherw" GOBIN=$work/bin
driver() { # in directory $1
	cp -r "$root/tools/release/testdata/driver" "$work/$1"
	cd "$work/$1"
	go mod init "example.com/$1" 2>/dev/null
}
driver driver
eval "$(shown "go get $ours/mounter@" docs/mounter.md)"
GOOS=windows go build -o driver.exe .
part "its test runs on an emulated node"
eval "$(shown "go get $ours/mounter/mountertest@" docs/mounter.md)"
go test -count=1 ./...
for page in library migration-v1-to-library migration-from-original; do eval "$(shown 'go get ' "docs/$page.md")"; done

part "programs are installed"
eval "$(shown 'go install ' docs/releasing.md)"
"$GOBIN/csi-proxyctl" --version | grep -F "$version"

part "go.mod and go.sum of the modules are tidy, and the examples build beside them"
for line in "${versions[@]}"; do go -C "$work/source/${line% *}" mod tidy -diff; done
go -C "$work/source/examples" vet -asmdecl ./... # which compiles them, and looks for no more

part "ported drivers get the mounter, and ${PORT=csi-driver-smb} is built for Windows" # all with PORT=, as each night
(cd "$root/v2/test/drivers/ported" && "$work/ported.test" -test.run='^TestAdopt$' -test.v -build="$PORT" -mounter="$(sed -n 's@^mounter @@p' "$root/tools/release/versions.txt")")

# As the go command clones it from GitHub, which is the scratch directory to git.
part "a driver replaces modules by those of a fork, without a proxy"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$work/source.insteadOf" GIT_CONFIG_VALUE_0=https://github.com/OWNER/csi-proxy
export GOPROXY=$machines GOPRIVATE=github.com/OWNER
unset GONOSUMDB
driver fork
for line in "${versions[@]}"; do
	case $line in v2/cmd*|*/mountertest*) go mod edit -replace "$ours/${line/ /@}=github.com/OWNER/csi-proxy/${line/ /@}" ;; esac
done
eval "$(shown 'go mod ' docs/releasing.md)"
go test -count=1 ./...
for line in "${versions[@]}"; do # the same files, whichever way they came
	[[ $line = kubectl* ]] || diff -r "$GOMODCACHE"/github.com/{kubernetes-csi,\!o\!w\!n\!e\!r}/csi-proxy/"${line/ /@}"
done
part "done"
