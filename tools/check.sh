#!/usr/bin/env bash
# Vets, lints and tests the packages that have changed, for Linux and for Windows.
#
#   tools/check.sh [COMMIT]
#
# What has changed is what differs from COMMIT: by default the upstream branch, or the last commit if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1:-$(git merge-base HEAD '@{upstream}' 2>/dev/null || echo HEAD)}
base=$(git rev-parse --verify --quiet "$base^{commit}") || { echo >&2 "$0: $1 is not a commit"; exit 2; }
mapfile -t files < <({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u)
echo "check what differs from $(git log -1 --format='%h (%s)' "$base"): ${#files[@]} files"

# The directories of packages, by module. A file in testdata belongs to the package above it, one of deploy to the tests of
# the manifests, and what has no package near it, such as a Makefile or a go.mod, to none: 'make test' has those tests.
declare -A packages=()
for file in ${files[@]+"${files[@]}"}; do
	case $file in
	*.md) packages[v2]+="./internal/testing/prose " ;;&
	deploy/*) packages[tools]+="./manifests " ;;
	esac
	dir=$(dirname "$file")
	[[ $file != */testdata/* ]] || dir=${file%%/testdata/*}
	compgen -G "$dir/*.go" >/dev/null || continue
	module=$dir
	until [ -e "$module/go.mod" ] || [ "$module" = . ]; do module=$(dirname "$module"); done
	[ "$module" = . ] || packages[$module]+=".${dir#"$module"} "
done
[ ${#packages[@]} != 0 ] || { echo "no package has changed; 'make test' tests the rest"; exit 0; }

lint=$PWD/bin/tools/golangci-lint
for module in "${!packages[@]}"; do
	mapfile -t dirs < <(tr ' ' '\n' <<<"${packages[$module]}" | sed '/^$/d' | sort -u)
	grep -q "^	./$module\$" go.work && work='' || work=off # the tools, the examples and the plugin are apart
	echo "$module: ${dirs[*]}"
	for os in linux windows; do
		GOWORK=$work GOOS=$os go -C "$module" vet -tags="drivers,wine,${TAGS:-}" "${dirs[@]}"
		(cd "$module" && GOWORK=$work GOOS=$os "$lint" run "${dirs[@]}")
	done
	GOWORK=$work go -C "$module" test -short -count=1 -parallel=8 "${dirs[@]}"
done
