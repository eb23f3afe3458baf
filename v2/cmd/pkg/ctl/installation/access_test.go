package installation_test

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm/scmtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

const (
	trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
	aUser            = "S-1-5-21-1-2-3-1001"
	// root is C:\ of a Windows Server: users may create folders in it, and files in those.
	root = "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICIIO;GA;;;CO)"
	// inherited is a folder that an administrator makes there.
	inherited = "D:AI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CI;DC;;;BU)(A;OICIIO;GA;;;CO)"
	closed    = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"
)

// tree is who owns paths and has access to them; an access list of "link" is a link.
type tree map[string][2]string

func (files tree) access(path string) (installation.Access, error) {
	found, ok := files[path]
	if !ok {
		return installation.Access{}, fs.ErrNotExist
	}
	if found[1] == "link" {
		return installation.Access{Owner: found[0], Link: true}, nil
	}
	list, err := sddl.Parse(found[1])
	return installation.Access{Owner: found[0], Allowed: list}, err
}

func TestProtected(t *testing.T) {
	const program = `C:\k\bin\csi-proxy.exe`
	for name, test := range map[string]struct {
		change tree
		want   string // what the error says
	}{
		"all closed":                           {},
		"users create files in the folder":     {tree{`C:\k\bin`: {sddl.Administrators, inherited}}, `C:\k\bin can be changed by Users`},
		"users create folders above":           {tree{`C:\k`: {sddl.Administrators, inherited}}, ""},
		"users exchange folders above":         {tree{`C:\k`: {sddl.Administrators, "D:(A;;DT;;;AU)"}}, `C:\k can be changed by Authenticated Users`},
		"the folder above is a user's":         {tree{`C:\k`: {aUser, closed}}, `C:\k belongs to ` + aUser},
		"the program is a user's":              {tree{program: {aUser, closed}}, program + ` belongs to ` + aUser},
		"users write to the program":           {tree{program: {sddl.LocalSystem, "D:(A;;FA;;;SY)(A;;GW;;;WD)"}}, program + ` can be changed by Everyone`},
		"another account may delete it":        {tree{program: {sddl.LocalSystem, "D:(A;;SD;;;" + aUser + ")"}}, program + ` can be changed by ` + aUser},
		"what children inherit does not count": {tree{program: {sddl.LocalSystem, "D:(A;OICIIO;FA;;;WD)(A;;FA;;;SY)"}}, ""},
		"the account Administrator":            {tree{program: {sddl.Administrators, "D:(A;;FA;;;S-1-5-21-1-2-3-500)"}}, ""},
		"an owner with rights":                 {tree{program: {trustedInstaller, "D:(A;;FA;;;OW)"}}, ""},
		"a link on the way":                    {tree{`C:\k`: {sddl.Administrators, "link"}}, `C:\k is a link`},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree{
				`C:\`: {trustedInstaller, root}, `C:\k`: {sddl.Administrators, closed},
				`C:\k\bin`: {sddl.Administrators, closed}, program: {sddl.Administrators, closed},
			}
			maps.Copy(files, test.change)
			err := installation.Protected(program, files.access)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	files := tree{`C:\`: {trustedInstaller, root}, `C:\k`: {sddl.Administrators, inherited}}
	require.NoError(t, errors.Join(installation.FolderProtected(`C:\k`, files.access), installation.FolderProtected(`C:\k\none`, files.access)))
	if err := installation.Protected(`C:\k\none.log`, files.access); err == nil {
		t.Error("a folder in which users create files is fine for a log")
	}
	if err := installation.Protected(`\\server\share\csi-proxy.exe`, tree{`\\server\share`: {aUser, closed}}.access); err == nil {
		t.Error("a share of a user is fine")
	}
	if err := installation.Protected(`C:\x`, func(string) (installation.Access, error) { return installation.Access{}, fs.ErrPermission }); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("unknown access: %v", err)
	}
}

// TestInstaller_ChecksAccess: neither the program, nor the copy of what replaces it, may be changed by others, unless forced.
func TestInstaller_ChecksAccess(t *testing.T) {
	for _, exposed := range []string{"csi-proxy.exe", "csi-proxy.exe.new", "csi-proxy-v2.exe"} {
		m := newMachine(t, "healthy new")
		i := installer(m.Manager)
		i.Check = m.check
		i.Access = func(path string) (installation.Access, error) {
			if filepath.Base(path) == exposed {
				return installation.Access{Owner: aUser}, nil
			}
			return installation.Access{Owner: sddl.Administrators}, nil
		}
		options := installation.Options{}
		if exposed == "csi-proxy-v2.exe" {
			options.Binary = m.next
		}
		if _, err := i.Install(options); exposed != "csi-proxy.exe.new" && (err == nil || !strings.Contains(err.Error(), "icacls") || m.Service.Configured != 0) {
			t.Errorf("install, %s of a user: %v", exposed, err)
		}
		err := i.Upgrade(t.Context(), m.next)
		if exposed == "csi-proxy-v2.exe" { // which is copied
			if err != nil || m.content(t, m.binary) != "healthy new" {
				t.Errorf("upgrade, %s of a user: %v", exposed, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "icacls") || !strings.Contains(err.Error(), "--force") || m.content(t, m.binary) != "healthy old" || m.Service.Now.State != scm.Running {
			t.Errorf("upgrade, %s of a user: %v, the service is %s", exposed, err, m.Service.Now.State)
		}
		progress := ""
		i.Force, i.Progress = true, func(text string) { progress += text }
		if err := i.Upgrade(t.Context(), m.next); err != nil || m.content(t, m.binary) != "healthy new" || !strings.Contains(progress, "accepted: ") {
			t.Errorf("forced: %v, %s", err, progress)
		}
	}
}

// TestInstaller_OnlyOfCSIProxy: other services keep their programs. A wrapper runs the kubelet too.
func TestInstaller_OnlyOfCSIProxy(t *testing.T) {
	const ours, others = "csi-proxy.exe", "nssm.exe"
	for name, removes := range map[string]bool{
		"csi-proxy C:\\k\\csi-proxy.exe": true, "csi-proxy C:\\k\\nssm.exe": true, "Kubelet C:\\k\\nssm.exe": false,
		"Kubelet C:\\k\\kubelet.exe": false, "rancher-wins C:\\k\\wins.exe": false,
	} {
		m, i := scmtest.New(), installer(nil)
		i.Name, name, _ = strings.Cut(name, " ")
		i.Manager = m
		_, _ = m.Create(i.Name, scm.Config{Command: name})
		if removed, err := i.Uninstall(t.Context()); removed != removes || (err == nil) != removes {
			t.Errorf("remove %s: %v, %v", name, removed, err)
		}
	}
	for _, test := range []struct {
		file, resource string
		refused, force string // what the error says, also if forced
	}{
		{file: "csi-proxy.exe"},
		{file: "CSI-Proxy-v1.1.2.exe"},
		{file: "csi-proxy.exe.old"},
		{file: "renamed.exe", resource: ours},
		{file: "kubelet.exe", refused: "not named csi-proxy"},
		{file: "csi-proxyctl.exe", refused: "not named csi-proxy"},
		{file: "csi-proxy-sim.exe", refused: "not named csi-proxy"},
		{file: "csi-proxy.exe", resource: "kubelet.exe", refused: "is kubelet.exe, not csi-proxy"},
		{file: "nssm.exe", refused: "the service wrapper nssm", force: "the service wrapper nssm"},
		{file: "csi-proxy.exe", resource: others, refused: "the service wrapper nssm", force: "the service wrapper nssm"},
		{file: "wins.exe", refused: "--name csiproxy", force: "--name csiproxy"},
	} {
		for _, force := range []bool{false, true} {
			m := newMachine(t, "healthy new")
			program := filepath.Join(t.TempDir(), test.file)
			require.NoError(t, os.WriteFile(program, programWith(test.resource), 0o600))
			m.Service.Settings.Command = `"` + program + `" -windows-service`
			m.Service.Now.State = scm.Stopped
			i := installer(m.Manager)
			i.Check, i.Force = m.check, force
			want := test.refused
			if force {
				want = test.force
			}
			for what, err := range map[string]error{
				"install to it": func() error { _, err := i.Install(installation.Options{}); return err }(),
				"install it": func() error {
					i := *i
					i.Manager = scmtest.New()
					_, err := i.Install(installation.Options{Binary: program})
					return err
				}(),
				"upgrade it": i.Upgrade(t.Context(), m.next),
			} {
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %+v, forced %v: %v", what, test, force, err)
				}
			}
			if got := m.content(t, program); (got == "healthy new") != (want == "") {
				t.Errorf("%+v, forced %v: the program is %.20q", test, force, got)
			}
		}
	}
}

// programWith returns a program that was built with a name, or something without a version resource.
func programWith(name string) []byte {
	if name == "" {
		return []byte("healthy old")
	}
	text := func(s string) []byte {
		data, _ := binary.Append(nil, binary.LittleEndian, utf16.Encode([]rune(s+"\x00")))
		return data
	}
	resource := slices.Concat([]byte("header"), text("OriginalFilename"), text(name), make([]byte, 64))
	head := pe.FileHeader{Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 1}
	section := pe.SectionHeader32{SizeOfRawData: uint32(len(resource)), PointerToRawData: 60}
	copy(section.Name[:], ".rsrc")
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, head)
	_ = binary.Write(&b, binary.LittleEndian, section)
	return append(b.Bytes(), resource...)
}
