package win

import (
	"bytes"
	"fmt"
	"io"
)

// Secret is a text that must never be shown, such as a CHAP secret. Printed, logged or
// marshalled it is "***". It is kept in a function, which no printer calls, so that even a
// struct with a Secret in a private field does not reveal it.
//
// Copies of a Secret share the text. The zero value has none.
type Secret struct{ reveal func() []byte }

// redacted replaces any secret, whatever its length.
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

// String reveals nothing.
func (Secret) String() string { return redacted }

// GoString reveals nothing to %#v.
func (Secret) GoString() string { return redacted }

// Format reveals nothing to any verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText reveals nothing to encoders such as JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalLog reveals nothing to loggers.
func (Secret) MarshalLog() any { return redacted }
