#!/usr/bin/env bash
# Makes the commit of a release, and its tags: HEAD, with go.mod files that require the versions of versions.txt and replace
# nothing. Branches keep theirs. With REMOTE it also pushes the tags. That of the release is the last and alone, because GitHub
# starts no workflow for more than three at once.
#
#   tools/release/tag.sh VERSION DATE [REMOTE]
set -euo pipefail
UNRELEASED='' TAGGING=1 "$(dirname "$0")/check.sh" "$1" registry.example/csi-proxy
mapfile -t tags < <(awk '{ print ($1 == "v2" ? "" : $1 "/") $2 }' tools/release/versions.txt)
taken=$(git tag --list "${tags[@]}" "$1")
[ -z "$taken" ] || { echo "release: there are tags" $taken "already; raise versions.txt" >&2; exit 1; }
work=$(mktemp -d)
trap 'git worktree remove --force "$work"' EXIT
git worktree add --quiet --detach "$work" HEAD
GOWORK=off go -C tools run ./release -tag -source "$work" -dist "$work/dist" -version "$1" -date "$2"
git -C "$work" commit --quiet --allow-empty --all --message "release: $1, with the requirements that others get"
for tag in "${tags[@]}" "$1"; do git -C "$work" tag --annotate "$tag" --message "$tag"; done
echo "tagged: ${tags[*]} $1"
[ -n "${3:-}" ] || exit 0
git push --atomic "$3" "${tags[@]}" || { git tag --delete "${tags[@]}" "$1"; exit 1; }
git push "$3" "$1" || { echo "release: the modules are tagged; now run 'git push $3 $1'" >&2; exit 1; }
