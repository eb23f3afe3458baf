package bundle

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
)

// shapes are what names look like at places where a pattern finds them; elsewhere a name is only itself.
var shapes = map[string]string{
	"Path.Base":                `C:\var\lib\kubelet\pods\%s\volumes`,
	"Path.Rest":                `kubernetes.io~csi\%s\mount`,
	"Device":                   `\\?\scsi#disk&ven_msft#5&%s&0#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`,
	"VolumeID":                 `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`,
	"Location":                 `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\var\lib\kubelet\pods\%s`,
	"VolumePaths":              `C:\var\lib\kubelet\plugins\kubernetes.io\csi\pv\%s\globalmount\`,
	"ReparsePoint.Substitute":  `\??\UNC\%s\%s\sub`,
	"ReparsePoint.Print":       `\\%s\%s\sub`,
	"CreateDirectoryLink 2":    `\\%s\%s`,
	"SMBMapping.Remote":        `\\%s\%s`,
	"SMBMapping 1":             `\\%s\%s`,
	"RemoveSMBMapping 1":       `\\%s\%s`,
	"SMBMappingRequest.Remote": `\\%s\%s`,
	"SMBMappingRequest.User":   `CORP\%s the first`,
	"RootSecurity":             `D:(A;;FA;;;S-1-5-21-1-2-3-4711)(A;;FA;;;S-1-12-1-47-4711)`,
	"SetRootSecurity 2":        `D:(A;;FA;;;S-1-5-21-1-2-3-4711)`,
	"StorageAdapters":          `PCI\VEN_15AD&DEV_0779\%s`,
	"RescanAdapter 1":          `USB\VID_174C&PID_55AA\%s`,
	"Login.Target":             `iqn.2025-01.com.acme:%s`,
	"PersistentLogin.Target":   `iqn.2025-01.com.acme:%s`,
	"Session.TargetNodeName":   `iqn.2025-01.com.acme:%s`,
	"Session.TargetName":       `iqn.2025-01.com.acme:%s`,
	"ReportTargets":            `iqn.2025-01.com.acme:%s`,
	"ReportTargetPortals 1":    `eui.%s`,
}

// stay are the places whose names tell nothing about a customer, or are directories and models, which stay in all
// files of a bundle.
var stay = []string{
	"ActiveDependents", "ActiveDependents 1", "ServiceConfig 1", "ServiceConfig.DisplayName", "ServiceStatus 1", "StartService 1", "StopService 1",
	"DeviceDescriptor.Product", "DeviceDescriptor.Vendor", "DeviceLocation", "SCSIAddress.BusNumber", "SessionDevice.LegacyName",
	"PersistentLogin.InitiatorInstance", "SendTargetPortal.InitiatorInstance",
	"DirEntry.Name", "FileSystemInfo.Name", "FormatOptions.FileSystem", "RepairVolume 2", "VolumeOfDrive 1",
}

// planter makes up values, each with a name of its own. It knows the place of each name.
type planter map[string]string

func (p planter) name(at string) string {
	name := fmt.Sprintf("Zq%dqz", len(p))
	p[name] = at
	return name
}

func (p planter) fill(v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.String:
		shape := cmp.Or(shapes[v.Type().Name()], shapes[at], "%s") // a Device and a VolumeID are the same everywhere
		v.SetString(strings.ReplaceAll(shape, "%s", p.name(at)))
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[win.Secret]():
			v.Set(reflect.ValueOf(win.NewSecret("hunter2")))
		case reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
		default:
			for i := range v.NumField() {
				p.fill(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]byte]() {
			v.SetBytes([]byte(p.name(at)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		p.fill(v.Index(0), at)
	default:
	}
}

// plantedCalls records a call of each method of the seam, found by reflection, with a name at each place.
func plantedCalls(t *testing.T) (recording []byte, names planter) {
	t.Helper()
	p := planter{}
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	recorder, err := record.Open(t.Context(), record.Config{Path: file})
	require.NoError(t, err)
	m := win.Intercept(win.Intercept(struct{ win.Machine }{}, func(_ context.Context, c *win.Call, _ func(context.Context) error) error {
		if c.Result != nil {
			p.fill(reflect.ValueOf(c.Result).Elem(), c.Method)
		}
		return nil
	}), recorder.Intercept)
	dir, err := m.OpenDirectory(t.Context(), win.Following(`C:\var\lib\kubelet\pods`)) // whose entries are names
	require.NoError(t, err)
	for _, object := range []reflect.Value{reflect.ValueOf(&m).Elem(), reflect.ValueOf(&dir).Elem()} {
		for i := range object.NumMethod() {
			method := object.Type().Method(i)
			if slices.Contains([]string{"Now", "Elapsed", "Sleep", "Close"}, method.Name) {
				continue
			}
			arguments := []reflect.Value{reflect.ValueOf(t.Context())}
			for j := 1; j < method.Type.NumIn(); j++ {
				argument := reflect.New(method.Type.In(j)).Elem()
				p.fill(argument, fmt.Sprint(method.Name, " ", j))
				arguments = append(arguments, argument)
			}
			object.Method(i).Call(arguments)
		}
	}
	require.NoError(t, recorder.Close())
	if recording, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	return recording, p
}

// TestClean_Calls: with hidden names, a recording has no name that is at any place of the seam, but those that stay,
// also if no node has reported its names; and never a secret. Its lines stay JSON.
func TestClean_Calls(t *testing.T) {
	recording, names := plantedCalls(t)
	if len(names) < 60 {
		t.Fatalf("%d names are planted", len(names))
	}
	log := ""
	for name, at := range names {
		if at == "DeviceDescriptor.Serial" {
			log = "disk " + name + " is gone\n"
		}
	}
	files := []File{{Name: "calls.txt", Content: WholeLines(recording)}, {Name: "log.txt", Content: []byte(log)}}
	hide := NewNames(nil)
	hide.LearnCalls(files[0].Content)
	Clean(files, hide)
	text := string(files[0].Content)
	var survived []string
	for name, at := range names {
		for _, form := range []string{name, hex.EncodeToString([]byte(name)), base64.StdEncoding.EncodeToString([]byte(name))} {
			if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
				survived = append(survived, at)
			}
		}
	}
	slices.Sort(survived)
	if diff := gocmp.Diff(slices.Sorted(slices.Values(stay)), slices.Compact(survived)); diff != "" {
		t.Errorf("names that stay (-want +got):\n%s\nin %s", diff, text)
	}
	timeless := regexp.MustCompile(`"time":"[^"]*"`).ReplaceAllString(text, "") // its digits are any
	for _, never := range []string{"hunter2", "4711", "CORP", "the first", "0c51a9e0", "acme"} {
		if strings.Contains(timeless, never) {
			t.Errorf("%s is in\n%s", never, text)
		}
	}
	if lines := strings.Count(string(recording), "\n"); strings.Count(text, "\n") != lines {
		t.Errorf("of %d lines there are %d", lines, strings.Count(text, "\n"))
	}
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if got := string(files[1].Content); !strings.HasPrefix(got, "disk serial-") {
		t.Errorf("a name of the recording stays in the log: %s", got)
	}
}

// TestWholeLines: a line that is being written, and one that a full disk has cut, are left out.
func TestWholeLines(t *testing.T) {
	const whole = `{"method":"a"}` + "\n"
	if got := string(WholeLines([]byte(whole + `{"method":"b","args":{"user":"al` + "\n" + whole + "\n" + `{"method":`))); got != whole+whole {
		t.Errorf("got %q", got)
	}
	if got := WholeLines([]byte("I1115 a log\n")); got != nil {
		t.Errorf("got %q", got)
	}
}
