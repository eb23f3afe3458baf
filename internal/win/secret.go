package win

import (
	"bytes"
	"fmt"
	"io"
)

// Secret is a text that nobody may see: a CHAP secret. However it is printed, logged or
// marshalled, "***" is what comes out. It lies behind a function, which no printer calls, so
// that not even a struct that hides it in a private field gives it away.
//
// Copies of a Secret share the text. The zero value has none.
type Secret struct{ reveal func() []byte }

// redacted stands for any secret; its length says nothing about that of the secret.
const redacted = "***"

// NewSecret copies a text into a Secret. Wipe it after use.
func NewSecret(text string) Secret { return newSecret([]byte(text)) }

func newSecret(b []byte) Secret { return Secret{func() []byte { return b }} }

// Bytes are the secret itself. They are valid until Wipe.
func (s Secret) Bytes() []byte {
	if s.reveal == nil {
		return nil
	}
	return s.reveal()
}

// Clone returns a copy with a text of its own.
func (s Secret) Clone() Secret { return newSecret(bytes.Clone(s.Bytes())) }

// Wipe overwrites the text, for all copies of this Secret.
func (s Secret) Wipe() { clear(s.Bytes()) }

// String gives nothing away.
func (Secret) String() string { return redacted }

// GoString gives nothing away to %#v.
func (Secret) GoString() string { return redacted }

// Format gives nothing away to any verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText gives nothing away to encoders such as JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalLog gives nothing away to loggers.
func (Secret) MarshalLog() any { return redacted }
