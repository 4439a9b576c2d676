#!/usr/bin/env bash
# What `kernelmill cluster init` makes, asked of another program: openssl verifies the chain for both
# ends, two ends that show the certificate talk, and every other client is turned away.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

fresh_state
kernelmill=${KERNELMILL_BIN_DIR:?}/kernelmill

own=$("$kernelmill" cluster init --dir "$scratch/own" 2>/dev/null)
other=$("$kernelmill" cluster init --dir "$scratch/other" 2>/dev/null)

for purpose in sslserver sslclient; do
  check "the certificate serves as $purpose" \
    openssl verify -x509_strict -purpose "$purpose" -CAfile "$own/ca.pem" "$own/node.pem"
done
check "another cluster's authority does not vouch for it" \
  refuses openssl verify -CAfile "$other/ca.pem" "$own/node.pem" 2>/dev/null
check "a machine's certificate vouches for nothing" \
  refuses openssl verify -CAfile "$own/node.pem" "$own/node.pem" 2>/dev/null
text=$(openssl x509 -in "$own/node.pem" -noout -text)
for part in 'Public Key Algorithm: id-ecPublicKey' 'NIST CURVE: P-256' 'ecdsa-with-SHA256' \
  'CA:FALSE' 'Digital Signature' 'TLS Web Server Authentication, TLS Web Client Authentication'; do
  check "the certificate says: $part" grep -qF "$part" <<<"$text"
done

# Port 0 takes a free one; the server prints which. It answers each line reversed.
openssl s_server -accept 127.0.0.1:0 -Verify 1 -verify_return_error -rev \
  -CAfile "$own/ca.pem" -cert "$own/node.pem" -key "$own/node.key" \
  >"$scratch/server.log" 2>&1 </dev/null &
if ! until_true grep -q '^ACCEPT ' "$scratch/server.log"; then echo "the server did not start"; exit 1; fi
address=$(sed -n 's/^ACCEPT //p' "$scratch/server.log" | head -n 1)

# With TLS 1.3 a client learns that it was turned away only when it reads: so it must get an answer.
# No coproc: bash forgets its name, and ends with an unset variable, as soon as a client that was turned away is gone.
mkfifo "$scratch/said" "$scratch/heard"
answer() { # OPTIONS...
  local line='' client
  # Open at both ends here: nothing waits for a client that is gone, and none is told of an end.
  exec 3<>"$scratch/said"
  timeout 100 openssl s_client -connect "$address" -quiet -verify_return_error "$@" \
    <"$scratch/said" >"$scratch/heard" 2>/dev/null 3>&- &
  client=$!
  echo llimlenrek >&3
  read -r line <"$scratch/heard" || true
  kill "$client" 2>/dev/null || true
  wait "$client" 2>/dev/null || true
  exec 3>&-
  [ "$line" = kernelmill ]
}
check "two ends that show the certificate talk" \
  answer -CAfile "$own/ca.pem" -cert "$own/node.pem" -key "$own/node.key"
check "a client without a certificate gets no answer" refuses answer -CAfile "$own/ca.pem"
check "a client of another cluster gets no answer" \
  refuses answer -CAfile "$own/ca.pem" -cert "$other/node.pem" -key "$other/node.key"
check "a client does not talk to a server of another cluster" \
  refuses answer -CAfile "$other/ca.pem" -cert "$own/node.pem" -key "$own/node.key"
check "after all that, the certificate is still answered" \
  answer -CAfile "$own/ca.pem" -cert "$own/node.pem" -key "$own/node.key"
