#!/usr/bin/env bash
# Signs programs for Windows in place, with osslsigncode, if SIGN_CERT and SIGN_KEY name a certificate chain and its key.
#
#   tools/release/sign.sh [FILE...]
#
# Without a server SIGN_TIMESTAMP, the time of the signature is SOURCE_DATE_EPOCH, so that it is reproducible. Windows
# shows HOME_URL with it.
set -euo pipefail

[ -n "${SIGN_CERT:-}${SIGN_KEY:-}" ] || exit 0
[ -n "${SIGN_CERT:-}" ] && [ -n "${SIGN_KEY:-}" ] || { echo "sign: a certificate needs its key, and a key its certificate" >&2; exit 1; }
tool=${OSSLSIGNCODE:-osslsigncode}
command -v "$tool" >/dev/null || { echo "sign: $tool is missing; install it, or run 'make osslsigncode' and set OSSLSIGNCODE" >&2; exit 1; }
for file; do
  "$tool" sign -certs "$SIGN_CERT" -key "$SIGN_KEY" -h sha256 -n "CSI Proxy" -st "${SOURCE_DATE_EPOCH:?}" \
    ${HOME_URL:+-i "$HOME_URL"} ${SIGN_TIMESTAMP:+-ts "$SIGN_TIMESTAMP"} -in "$file" -out "$file.signed"
  mv "$file.signed" "$file"
done
