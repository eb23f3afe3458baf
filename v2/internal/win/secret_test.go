package win_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const planted = "xyzzy-plugh-42"

func TestSecret_IsNeverPrinted(t *testing.T) {
	secret := win.NewSecret(planted)
	type private struct {
		secret win.Secret
		nested *win.Login
	}
	values := map[string]any{
		"secret":         secret,
		"pointer":        &secret,
		"in a login":     win.Login{User: "me", Secret: secret},
		"pointer to it":  &win.Login{Secret: secret},
		"private field":  private{secret: secret, nested: &win.Login{Secret: secret}},
		"in a slice":     []win.Secret{secret},
		"in a map":       map[string]win.Secret{"key": secret},
		"in an error":    fmt.Errorf("login: %v", win.Login{Secret: secret}),
		"joined errors":  errors.Join(fmt.Errorf("%+v", secret), fmt.Errorf("%q", secret)),
		"in an any list": []any{secret, &secret},
	}
	for name, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%T"} {
			check(t, name+" with "+verb, fmt.Sprintf(verb, value))
		}
		check(t, name+" by Sprint", fmt.Sprint(value))
		if text, err := json.Marshal(value); err == nil {
			check(t, name+" as JSON", string(text))
		}
		var logged strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("message", "value", value)
		funcr.New(func(prefix, args string) { logged.WriteString(prefix + args) }, funcr.Options{Verbosity: 10}).Info("message", "value", value)
		check(t, name+" in a log", logged.String())
	}
	if got := fmt.Sprint(secret); got != "***" {
		t.Errorf("a secret prints as %q", got)
	}
}

// check looks for the secret in a text, as it is and in the ways in which bytes are printed.
func check(t *testing.T, what, text string) {
	t.Helper()
	numbers := strings.Trim(fmt.Sprintf("%d", []byte(planted[:4])), "[]")
	for _, form := range []string{planted, fmt.Sprintf("%x", planted), fmt.Sprintf("%X", planted), numbers, "0x78, 0x79, 0x7a"} {
		if strings.Contains(text, form) {
			t.Errorf("%s gives the secret away: %s", what, text)
		}
	}
}

func TestSecret_Wipe(t *testing.T) {
	secret := win.NewSecret("xyzzy")
	same, clone := secret, secret.Clone()
	secret.Wipe()
	if string(same.Bytes()) != "\x00\x00\x00\x00\x00" {
		t.Errorf("after wiping %q is left", same.Bytes())
	}
	if string(clone.Bytes()) != "xyzzy" {
		t.Errorf("the clone is %q", clone.Bytes())
	}
	var none win.Secret
	none.Wipe()
	if len(none.Bytes()) != 0 || len(none.Clone().Bytes()) != 0 {
		t.Error("no secret has bytes")
	}
}
