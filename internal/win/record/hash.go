package record

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// hasher replaces names and serial numbers by hashes. Its key is random and never written, so that a
// name cannot be found by trying. Equal names have equal hashes within a recording.
type hasher struct{ key [32]byte }

func newHasher() *hasher {
	h := &hasher{}
	_, _ = rand.Read(h.key[:]) // never fails
	return h
}

// content is what a text or its bytes hold.
type content int

const (
	aName   content = iota // of a person's choice, or a serial number: hashed as a whole. It is the default.
	aPath                  // of a file or share: hashed name by name
	aTarget                // an iSCSI name: hashed, and still one
	aList                  // an access list: its accounts are hashed
	aPlace                 // of a device. A disk that is a file has the path of that file
	public                 // names that Windows and drivers have chosen
	removed                // bytes that hold serial numbers or data
)

// contents are the texts that are not names, by type and field, by method and argument, and for results by
// method.
var contents = map[string]content{
	"Path.Base":                  aPath,
	"Path.Rest":                  aPath,
	"ReparsePoint.Substitute":    aPath,
	"ReparsePoint.Print":         aPath,
	"SMBMapping.Remote":          aPath,
	"SMBMappingRequest.Remote":   aPath,
	"SMBMapping.remote":          aPath,
	"RemoveSMBMapping.remote":    aPath,
	"CreateDirectoryLink.target": aPath,
	"VolumeOfDrive.root":         aPath,
	"DirEntry.Name":              aPath,
	"VolumePaths":                aPath,
	"Volume.Paths":               aPath,
	"Location":                   aPath,

	"Login.Target":               aTarget,
	"Session.TargetNodeName":     aTarget,
	"Session.TargetName":         aTarget,
	"PersistentLogin.Target":     aTarget,
	"ReportTargetPortals.target": aTarget,
	"ReportTargets":              aTarget,
	"Target.Name":                aTarget,

	"RootSecurity":               aList,
	"SetRootSecurity.accessList": aList,
	"Volume.RootAccess":          aList,

	"DeviceLocation": aPlace,
	"Disk.Location":  aPlace,

	"DeviceDescriptor.Vendor":            public,
	"DeviceDescriptor.Product":           public,
	"SCSIAddress.BusNumber":              public,
	"StorageAdapters":                    public,
	"Description.Adapters":               public,
	"RescanAdapter.adapter":              public,
	"SendTargetPortal.InitiatorInstance": public,
	"PersistentLogin.InitiatorInstance":  public,
	"SessionDevice.LegacyName":           public,
	"FileSystemInfo.Name":                public,
	"ServiceConfig.DisplayName":          public,
	"ServiceConfig.name":                 public,
	"ServiceStatus.name":                 public,
	"StartService.name":                  public,
	"StopService.name":                   public,
	"ActiveDependents.name":              public,
	"ActiveDependents":                   public,
	"Service.Name":                       public,
	"Failure.Context":                    public,
	"Failure.Kind":                       public,

	"Failure.Text":           removed,
	"DeviceIdentifier.Value": aName,
	"FirmwareTable":          removed,
	"Description.Firmware":   removed,
	"Description.Snapshot":   removed,
}

// asTheyAre are the types without names.
var asTheyAre = map[reflect.Type]bool{
	reflect.TypeFor[win.Secret]():   true, // it is never written
	reflect.TypeFor[win.VolumeID](): true,
	reflect.TypeFor[win.GUID]():     true,
	reflect.TypeFor[time.Time]():    true,
}

// arguments returns arguments with hashes.
func (h *hasher) arguments(method string, arguments in) in {
	hashed := make(in, len(arguments))
	for i, a := range arguments {
		is, listed := contents[method+"."+a.name]
		if !listed && a.name == "name" {
			is = aPath // of an entry of a directory, which is hashed as in a path
		}
		hashed[i] = argument{a.name, h.hashed(a.value, is)}
	}
	return hashed
}

// hashed returns a copy of a value with hashes.
func (h *hasher) hashed(value any, is content) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return nil
	}
	return h.copyOf(v, is).Interface()
}

func (h *hasher) copyOf(v reflect.Value, is content) reflect.Value {
	if asTheyAre[v.Type()] {
		return v
	}
	made := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		made.SetString(h.text(v, is))
	case reflect.Pointer:
		if !v.IsNil() {
			made.Set(reflect.New(v.Type().Elem()))
			made.Elem().Set(h.copyOf(v.Elem(), is))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			of := is // an Answer is about the field that it is in
			if name := typeName(v.Type()); name != "Answer" {
				of = contents[name+"."+v.Type().Field(i).Name]
			}
			made.Field(i).Set(h.copyOf(v.Field(i), of))
		}
	case reflect.Slice:
		switch {
		case v.Type() == reflect.TypeFor[buffer]():
			made.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		case is == removed:
		case v.Type().Elem().Kind() == reflect.Uint8:
			made.SetBytes(h.bytes(v.Bytes()))
		case !v.IsNil():
			made.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				made.Index(i).Set(h.copyOf(v.Index(i), is))
			}
		}
	default: // numbers and booleans
		made.Set(v)
	}
	return made
}

// typeName is the name of a type without its type parameters.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

func (h *hasher) text(v reflect.Value, is content) string {
	text := v.String()
	switch {
	case text == "" || is == public:
		return text
	case is == removed:
		return ""
	case v.Type() == reflect.TypeFor[win.Device]():
		return h.device(text)
	case is == aPlace && !strings.Contains(text, winpath.Separator):
		return text // such as "PCI Slot 3 : Adapter 1 : Port 0 : Target 0 : LUN 2"
	case is == aPath, is == aPlace:
		return h.path(text)
	case is == aTarget:
		return "iqn.2000-01.hashed:" + h.sum(strings.ToLower(text))
	case is == aList:
		return account.ReplaceAllStringFunc(text, func(sid string) string { return h.sum(sid) })
	default:
		return h.sum(winpath.Fold(text))
	}
}

// sum is the hash of a name.
func (h *hasher) sum(name string) string { return "h-" + hex.EncodeToString(h.mac([]byte(name))[:8]) }

// bytes is the hash of an identifier, as long as the identifier.
func (h *hasher) bytes(identifier []byte) []byte {
	mac := h.mac(identifier)
	return bytes.Repeat(mac, 1+len(identifier)/len(mac))[:len(identifier)]
}

func (h *hasher) mac(text []byte) []byte {
	mac := hmac.New(sha256.New, h.key[:])
	mac.Write(text)
	return mac.Sum(nil)
}

var (
	// account is the security identifier of an account that an administrator has made.
	account = regexp.MustCompile(`S-1-5-21(?:-\d+)+`)
	// namedByWindows are the names of a path that Windows or kubelet have chosen.
	namedByWindows = regexp.MustCompile(`(?i)^(?:|[?.]+|[a-z]:|unc|globalroot|device|harddisk\d+|partition\d+|physicaldrive\d+|volume\{[0-9a-f-]+\}|` +
		`windows|system volume information|\$recycle\.bin|var|lib|kubelet|plugins|plugins_registry|pods|volumes|volume-subpaths|kubernetes\.io|kubernetes\.io~csi|csi|pv|globalmount|mount)$`)
	// deviceByNumber are the devices whose names hold no serial number.
	deviceByNumber = regexp.MustCompile(`(?i)^\\\\[.?]\\(?:physicaldrive\d+|volume\{[0-9a-f-]+\}|globalroot\\device\\harddisk\d+\\partition\d+)$`)
)

// path hashes each name of a path that neither Windows nor kubelet has chosen.
func (h *hasher) path(path string) string {
	names := strings.Split(path, winpath.Separator)
	for i, name := range names {
		if !namedByWindows.MatchString(name) {
			names[i] = h.sum(winpath.Fold(name))
		}
	}
	return strings.Join(names, winpath.Separator)
}

// device hashes the interface path of a device: some hold its serial number.
func (h *hasher) device(path string) string {
	if deviceByNumber.MatchString(path) {
		return path
	}
	return `\\?\` + h.sum(winpath.Fold(path))
}
