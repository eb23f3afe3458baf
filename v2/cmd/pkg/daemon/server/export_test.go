package server

import "google.golang.org/protobuf/reflect/protoreflect"

// Loggable is loggable for tests.
var Loggable = loggable

// IsSecret reports whether fields of this name are kept out of the log.
func IsSecret(name protoreflect.Name) bool { return secretFields[name] }

// Note is Failures.note for tests.
var Note = (*Failures).note
