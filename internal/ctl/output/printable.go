package output

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text fit for one line on a terminal. Serial numbers are what a device, or
// an iSCSI target, made up: they could paint the screen, or write lines of their own.
func Printable(text string) string {
	return mapRunes(text, func(int, rune) bool { return false })
}

// PrintableCopy returns a copy of a value in which all strings, however deep, are printable.
func PrintableCopy[T any](value T) T {
	clean := reflect.New(reflect.TypeFor[T]()).Elem()
	copyPrintable(clean, reflect.ValueOf(value))
	return clean.Interface().(T)
}

func copyPrintable(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.String:
		to.SetString(Printable(from.String()))
	case reflect.Struct:
		for i := range from.NumField() {
			copyPrintable(to.Field(i), from.Field(i))
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		}
		for i := range from.Len() {
			copyPrintable(to.Index(i), from.Index(i))
		}
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyPrintable(to.Elem(), from.Elem())
		}
	default:
		to.Set(from)
	}
}

// onlyOurs keeps the lines and the colours of a text, and escapes whatever else a terminal
// would obey.
func onlyOurs(text string) string {
	return mapRunes(text, func(at int, r rune) bool {
		return r == '\n' || r == escape && slices.ContainsFunc(append(escapes[Faint:], plainAgain), func(ours string) bool {
			return strings.HasPrefix(text[at:], ours)
		})
	})
}

// mapRunes escapes the runes that are not printable, except for those to keep.
func mapRunes(text string, keep func(at int, r rune) bool) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for at, r := range text {
		if unprintable(r) && !keep(at, r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return r != utf8.RuneError && !unicode.IsPrint(r) }
