package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/sweep"
)

func TestCollect(t *testing.T) {
	content := func(text string, err error) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return []byte(text), err }
	}
	files := Collect(t.Context(), []Part{
		{Name: "good.txt", Make: content("good", nil)},
		{Name: "fails.txt", Make: content("", errors.New("the daemon is gone"))},
		{Name: "panics.txt", Make: func(context.Context) ([]byte, error) { panic("a mistake") }},
		{Name: "half.txt", Make: content("half", errors.New("then it broke"))},
		{Name: "large.txt", Make: content(strings.Repeat("x", MaxPart+1), nil)},
		{Name: "empty.txt", Make: content("", nil)},
		{Name: "last.txt", Make: content("last", nil)},
	}, func(Part) {})
	var got []string
	for _, f := range files {
		got = append(got, f.Name+" "+string(f.Content[:min(4, len(f.Content))])+" "+f.Problem)
	}
	want := []string{
		"good.txt good ", "fails.txt  the daemon is gone", "panics.txt  internal error: a mistake",
		"half.txt half then it broke", "large.txt xxxx the rest is cut off", "empty.txt  it is empty", "last.txt last ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range Collect(ended, []Part{{Name: "a", Make: content("a", nil)}}, func(Part) {}) {
		if f.Content != nil || f.Problem == "" {
			t.Errorf("after the end: %+v", f)
		}
	}
}

func TestWrite(t *testing.T) {
	files := []File{
		{Name: "doctor.txt", What: "what doctor finds", Content: []byte("fine\n")},
		{Name: "metrics.txt", What: "metrics", Problem: "the address\nis not known"},
	}
	var packed bytes.Buffer
	require.NoError(t, Write(&packed, files, "A remark.\n", time.Now()))
	got := unpack(t, packed.Bytes())
	want := map[string]string{
		"support-bundle/contents.txt": "In the bundle:\n  doctor.txt            5 B  what doctor finds\nNot in the bundle:\n  metrics.txt    metrics: the address is not known\nA remark.\n",
		"support-bundle/doctor.txt":   "fine\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func unpack(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files[f.Name] = string(content)
	}
	return files
}

// TestRemoveSecrets: in every line, hunter2 is a secret and what is in keep is not.
func TestRemoveSecrets(t *testing.T) {
	for _, test := range []struct{ line, keep string }{
		{`I1115 12:00:00 edge.go:80] "Request" method="/v1.Smb/NewSmbGlobalMapping" password="hunter2" code="OK"`, `code="OK"`},
		{`password="hun \" hunter2" user="csi"`, `user="csi"`},
		{`{"username":"csi","password":"hunter2","share":"x"}`, `"share":"x"`},
		{`request="{\"username\":\"csi\",\"password\":\"hunter2\",\"next\":1}"`, `\"next\":1`},
		{`login {chap_secret: hunter2, mutual: true}`, `mutual: true`},
		{`csi-proxy.exe -v=4 -smb-password=hunter2 -log_file=C:\x.log`, `-log_file=C:\x.log`},
		{`csi-proxy.exe --api-token hunter2 -v=4`, `-v=4`},
		{`args=["-v=2","--token","hunter2","-kubelet-path=D:\\k"]`, `-kubelet-path=D:\\k`},
		{`DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=hunter2;EndpointSuffix=x`, `EndpointSuffix=x`},
		{`https://acme.blob.core.windows.net/c?sv=2024&sig=hunter2%3D&se=1`, `&se=1`},
		{`https://user:hunter2@files.example/a`, `@files.example/a`},
		{`Authorization: Bearer hunter2hunter2`, `Authorization`},
		{`Authorization: Basic aHVudGVyMg==hunter2`, `Authorization`},
		{"-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\nnext", "next"},
		{"-----BEGIN PRIVATE KEY-----\nhunter2", ""},
		{"hunter2+/\nhunter2==\n-----END PRIVATE KEY-----\nnext", "next"},
		{`got eyJhbGciOiJ.eyJodW50ZXIy.hunter2 from it`, `from it`},
		{`Passwd='hunter2 and more'; x=1`, `x=1`},
		{`pwd = hunter2`, `pwd`},
		{`the secret: "hunter2" was wrong`, `was wrong`},
		{`https://bob:hun@hunter2@files/x`, `@files/x`},
		{`https://hunter2@files.example/x`, `@files.example/x`},
		{`sig=hunter2&sv=1`, `&sv=1`},
		{`I1115 "Run" command="net.exe use Z: \\files\x /user:bob hunter2"`, `net.exe use`},
		{`"hunter2" | ConvertTo-SecureString -AsPlainText -Force`, `ConvertTo-SecureString`},
		{`(New-Object PSCredential("bob", "hunter2"))`, `PSCredential`},
		{`secrets:{key:"username" value:"bob"} secrets:{key:"password" value:"a \" hunter2"} volume_id:"v"`, `volume_id:"v"`},
		{`req="secrets:{key:\"password\" value:\"hunter2\"} volume_id:\"v\""`, `volume_id`},
		{`{"name":"CLIENT_SECRET","value":"hunter2"},{"name":"A"}`, `{"name":"A"}`},
		{`<Password type="x">hunter2</Password><next>`, `<next>`},
		{`body=password%22%3A%22hunter2%25hunter2&next=1`, `next=1`},
		{`"password": ["a", "hunter2"], "next": 1`, `"next": 1`},
		{`{"Password":{"value":"hunter2"},"next":1}`, `"next":1`},
		{`csi-proxy.exe --password "two hunter2 words" -v=4`, `-v=4`},
		{`csi-proxy.exe --password 'two hunter2 words' -v=4`, `-v=4`},
		{`args=["--password","two hunter2 words","-v=4"]`, `-v=4`},
		{`Cookie: session=hunter2`, `Cookie`},
		{`api key: hunter2`, `api key`},
	} {
		got := RemoveSecrets(test.line)
		if strings.Contains(got, "hunter2") || !strings.Contains(got, test.keep) {
			t.Errorf("%s\nbecomes\n%s", test.line, got)
		}
		if again := RemoveSecrets(got); strings.Count(again, removed) != strings.Count(got, removed) {
			t.Errorf("%s\nbecomes the second time\n%s", got, again)
		}
	}
	for _, line := range []string{
		`map it with --password-stdin or --password-file C:\secret.txt`, "the password was not checked", `"disks": [{"number": 1}]`,
		`csi_proxy_requests_total{code="OK"} 5`, "basic disk", `C:\var\lib\kubelet\pods`,
		"a volume in use, see https://kubernetes.io/docs", "the network uses IPv6", `csi-proxyctl smb map '\\files\x' --user csi`, `"drivers": ["secrets.csi.example"]`,
	} {
		if got := RemoveSecrets(line); got != line {
			t.Errorf("%s\nbecomes\n%s", line, got)
		}
	}
}

// TestClean_UTF16: secrets in a log that PowerShell has written are found, too.
func TestClean_UTF16(t *testing.T) {
	var log []byte
	for _, unit := range utf16.Encode([]rune("\ufeffpassword=hunter2 next\r\n")) {
		log = binary.LittleEndian.AppendUint16(log, unit)
	}
	files := []File{{Content: log}}
	Clean(files)
	if got := string(files[0].Content); strings.Contains(got, "hunter2") || !strings.Contains(got, "next") {
		t.Errorf("%q", got)
	}
}

// secretShapes are the ways in which people and programs write a secret S of the name K: YAML, JSON, PowerShell, INI files, XML,
// command lines and addresses.
var secretShapes = []string{
	"K: S", "K: \"S\"", "K: 'S'", "  - K: S", "K: &anchor S", "K: !!str S", "K: S # a comment", "K: [a, S]", "{a: b, K: S}",
	"K: |\n  S", "K: |-\n  a\n\n  S", "K: >2+\n  a S", "K:\n  S", "  K:\n    a\n    S", "K:\n- a\n- S", "K: \"a\n  S\"", "K:\n  sub: a\n  other: S", "- name: K\n  value: S", "- name: \"K\"\n  value: \"S\"",
	`{"K":"S"}`, `{"K" : "S", "a": 1}`, "{\n\"K\":\n\"S\"\n}", "{\n  \"K\": [\n    \"a\",\n    \"S\"\n  ]\n}", "{\n\"K\": {\n\"a\": \"S\"\n}\n}",
	`"{\"K\":\"S\"}"`, `"{\\\"K\\\":\\\"S\\\"}"`, `{"name":"K","value":"S"}`, `{"value":"S","name":"K"}`, `{"key": "K", "value": "S"}`, `{"K":{"value":"S"}}`, `{"K":null,"K":["S"]}`,
	"$K = 'S'", `$K="S"`, "$K = @'\nS\n'@", "$K = @\"\na S\n\"@", "$h.K = 'S'", "$h['K'] = \"S\"", "@{ User = 'a'; K = 'S' }", "$K += 'S'", "if ($K -eq 'S') {",
	"$env:K = 'S'", "Get-It -K S", "Get-It -K 'S'", "Get-It -K:S", "Get-It -K `\n  S", "[Environment]::setVariable('K', 'S')", "$K := \"S\"", "K => S", "'K' => 'S',",
	"K=S", "K = S", "K = a b S", "K=\"S\"", ";K=S", "[section]\nK : a S", "K = a \\\n  S", "K += S", "K ?= S",
	"tool --K S", "tool --K=S", "tool -K S -v", "tool --K \"a S\"", "tool /K:S", "tool /K S", "tool /K=S", "K=S tool", "set K=a S", "export K='S'", "tool --K \\\n  S", `["tool","--K","S"]`, "curl -u user:S files.example",
	"<K>S</K>", `<add key="K" value="S"/>`, `<it K="S"/>`, "dbPassword S", "smb_password S", "dbToken S", "K \"S\"", "net use Z: \\\\files\\x S /user:K",
	"https://user:S@files.example/K", "//user:S@files.example/x", "user:S@files.example", "/path?K=S&a=b", "K%3DS&a=b", "Authorization: Basic S", "X-K: S",
}

// names of secrets, and secrets. All of these secrets have hunter2 in them.
var (
	secretNames = []string{
		"password", "Password", "SMB_PASSWORD", "dbPasswd", "pwd", "passphrase", "secret", "client-secret", "CHAPSecret", "MutualChapSecret", "access_token", "apiKey", "api-key",
		"azurestorageaccountkey", "SharedAccessKey", "client-key-data", "private_key", "credentials",
	}
	secretValues = []string{"hunter2", "Xhunter2+/=", "a.hunter2-b_c", "hunter2!$", "x~hunter2*"}
)

// plant writes a secret, between a message before it and one after it.
func plant(shape, name, secret string) string {
	shape = strings.NewReplacer("K", name, "S", secret).Replace(shape)
	return "I1115 12:00:00.000000 1 a.go:1] before\n" + shape + "\nI1115 12:00:01.000000 1 a.go:2] after\n"
}

func TestRemoveSecrets_Shapes(t *testing.T) {
	try := sweep.OneIn(t, 10)
	for _, shape := range secretShapes {
		for _, name := range secretNames {
			for _, secret := range secretValues {
				if !try() {
					continue
				}
				text := plant(shape, name, secret)
				if got := RemoveSecrets(text); strings.Contains(got, "hunter2") || !strings.Contains(got, "] before\n") || !strings.Contains(got, "] after\n") {
					t.Errorf("%s\nbecomes\n%s", text, got)
				}
			}
		}
	}
}

// FuzzRemoveSecrets_Shapes puts secrets into one text, indented and after other text.
func FuzzRemoveSecrets_Shapes(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Add([]byte("\x10\x00\x01\x02\x20\x03\x02\x00\x33\x05\x04\x01"))
	before := []string{"", "  ", "\t", "# ", "I1115 12:00:00.000000 1 a.go:1] \"Run\" command: ", "user: alice\n", "the password is asked for:\r\n"}
	f.Fuzz(func(t *testing.T, choices []byte) {
		var text strings.Builder
		for ; len(choices) >= 4 && text.Len() < 4096; choices = choices[4:] {
			pick := func(i int, from []string) string { return from[int(choices[i])%len(from)] }
			shape := pick(0, secretShapes)
			if strings.TrimSpace(pick(3, before)) == "" {
				shape = strings.ReplaceAll(shape, "\n", "\n"+pick(3, before))
			}
			text.WriteString(plant(pick(3, before)+shape, pick(1, secretNames), pick(2, secretValues)))
		}
		files := []File{{Name: "a", Content: []byte(text.String())}}
		Clean(files)
		if got := string(files[0].Content); strings.Contains(got, "hunter2") {
			t.Errorf("%s\nbecomes\n%s", &text, got)
		}
	})
}

// TestClean_LeavesOut: where patterns find nothing, nothing is sent.
func TestClean_LeavesOut(t *testing.T) {
	binary := make([]byte, 4096)
	for i := range binary {
		binary[i] = byte(i * 37)
	}
	files := []File{{Name: "log.txt", Content: binary}, {Name: "latin.txt", Content: []byte("Ger\xe4t 1 ist nicht bereit\n")}}
	Clean(files)
	if files[0].Content != nil || !strings.Contains(files[0].Problem, "not text") || files[1].Content == nil || files[1].Problem != "" {
		t.Errorf("%.80q %q, %q %q", files[0].Content, files[0].Problem, files[1].Content, files[1].Problem)
	}
}
