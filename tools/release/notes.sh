#!/usr/bin/env bash
# Prints what CHANGELOG.md says about a version. With the address of the project, links to files of the source become
# links to the tag.
#
#   tools/release/notes.sh VERSION [HOME_URL]
set -euo pipefail

number=${1#v}
notes=$(awk -v number="$number" '/^## / { on = $2 == number || $2 == "[" number "]"; found = found || on; next }
  on && (text || NF) { text = 1; print }
  END { if (!found) exit 1 }' CHANGELOG.md) || {
  echo "CHANGELOG.md has no heading '## [$number] - DATE'; write one above the changes of the version" >&2
  exit 1
}
[ -n "$notes" ] || { echo "CHANGELOG.md says nothing below the heading of $number" >&2; exit 1; }
sed -E "${2:+s@\]\(([A-Za-z0-9_./-]+(#[^) ]*)?)\)@]($2/blob/$1/\1)@g}" <<<"$notes"
