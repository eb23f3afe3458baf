#!/usr/bin/env bash
# Checks the names and the source of a release, before anything is built.
#
#   tools/release/check.sh VERSION IMAGE_REPOSITORY [HOME_URL]
#
# With UNRELEASED set, it checks only the names: the source may have changes, and needs no tag and no notes. TAGGING allows
# source that has no tag yet, for tag.sh.
set -euo pipefail

fail() { echo "release: $*" >&2; exit 1; }
[[ $1 =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "version '$1': want the form v1.4.0 or v1.4.0-rc.1"
# The same as in the schema of the chart's values.
[[ $2 =~ ^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*$ ]] || fail "image repository '$2': want the form registry.example/csi-proxy, without a tag"
[[ ${3:-https://x} =~ ^https://[A-Za-z0-9.-]+(/[A-Za-z0-9._~-]+)*$ ]] || fail "home '$3': want the form https://github.com/OWNER/csi-proxy"
"$(dirname "$0")/sign.sh" # only whether it could
[ -z "${UNRELEASED:-}" ] || exit 0

# Otherwise the programs would name a commit that they were not built from.
hint="; to make files that are not published, run 'make release UNRELEASED=1'"
changed=$(git status --porcelain 2>&1) || fail "$changed$hint"
[ -z "$changed" ] || fail "the source has uncommitted changes, for example '$(head -n 1 <<<"${changed:3}")'; commit them$hint"
# What only settings of this clone ignore would be in the modules that others get.
hidden=$(cut -d' ' -f1 tools/release/versions.txt | xargs git ls-files --others --exclude-per-directory=.gitignore --)
[ -z "$hidden" ] || fail "git ignores '$(head -n 1 <<<"$hidden")' here only; remove it, or name it in .gitignore$hint"
programs=$(sed -n 's@^v2/cmd @@p' tools/release/versions.txt)
[ "$1" = "$programs" ] || fail "tools/release/versions.txt has $programs for v2/cmd, whose version the programs have, not $1$hint"
"$(dirname "$0")/notes.sh" "$1" >/dev/null
[ -z "${TAGGING:-}" ] || exit 0
git tag --points-at HEAD | grep -qxF -- "$1" || fail "HEAD has no tag $1; run 'make tag', or check out the tag$hint"
replacing=$(cut -d' ' -f1 tools/release/versions.txt | sed 's@$@/go.mod@' | xargs grep -lE '=> \.\.?/') || exit 0
fail "$replacing replaces modules; 'make tag' makes the commit that has the tags$hint"
