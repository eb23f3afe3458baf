package local

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func TestCredential(t *testing.T) {
	for _, c := range []struct{ user, password, want string }{
		{"me", "secret", "me:secret"},
		{`DOMAIN\me`, `p:ss\w`, `DOMAIN\\me:p:ss\w`},
		{`AZURE\account`, "k+/==", `AZURE\\account:k+/==`},
		{"me@example.com", `'"$(x)%PATH%`, `me@example.com:'"$(x)%PATH%`},
		{"a:b", ":", `a\:b::`},
		{`a\:b`, "", `a\\\:b:`},
		{"ünal", "пароль\U0001F511 \t\n", "ünal:пароль\U0001F511 \t\n"},
	} {
		password := win.NewSecret(c.password)
		if got := string(credential(c.user, password)); got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.user, c.password, got, c.want)
		}
		if got := string(password.Bytes()); got != c.password {
			t.Errorf("the password became %q", got)
		}
	}
}
