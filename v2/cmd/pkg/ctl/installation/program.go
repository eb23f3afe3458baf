package installation

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

const (
	daemonFile = "csi-proxy.exe"
	nssm       = "nssm.exe"
	wins       = "wins.exe"
)

// Wrapper says what the program of a service is, if it only runs csi-proxy, or "".
func Wrapper(command string) string {
	program := Program(command)
	if strings.EqualFold(program[strings.LastIndexAny(program, `\/`)+1:], nssm) {
		return "nssm, as on AKS: its parameters, not the command line, name csi-proxy.exe and its flags; see \"Platforms\" in operations.md"
	}
	return ""
}

// identify returns an error if a program is not csi-proxy, by its version resource or else, because the original has
// none, by its name. Services of AKS run under nssm.exe, which the kubelet's service runs under too.
func (i *Installer) identify(path string) error {
	file := strings.ToLower(path[strings.LastIndexAny(path, `\/`)+1:])
	original := strings.ToLower(originalName(path))
	switch {
	case file == nssm || original == nssm:
		return fmt.Errorf("the program of service %s is %s, the service wrapper nssm, under which AKS runs csi-proxy and the kubelet: csi-proxyctl does not replace it. By hand: stop the kubelet and this service, copy the new program over csi-proxy.exe, start both; see \"Platforms\" in operations.md", i.Name, path)
	case file == wins || original == wins:
		return fmt.Errorf("the program of service %s is %s, Rancher's agent, which creates the service csiproxy: use --name csiproxy; see \"Platforms\" in operations.md", i.Name, path)
	case original == daemonFile, original == "" && isDaemonName(file):
		return nil
	case i.Force:
		i.Progress("accepted: " + path + " does not look like csi-proxy")
		return nil
	case original != "":
		return fmt.Errorf("%s is %s, not csi-proxy; --force of install and upgrade accepts it", path, original)
	default:
		return fmt.Errorf("%s is not named csi-proxy, and has no version that says so; --force of install and upgrade accepts it", path)
	}
}

// removable returns an error if a service does not run csi-proxy. The command line of a wrapper does not say, but its name.
func (i *Installer) removable(command string) error {
	program := Program(command)
	if program == "" || Wrapper(command) != "" && strings.Contains(strings.ToLower(i.Name), "csi") {
		return nil
	}
	return i.identify(program)
}

// isDaemonName accepts names such as csi-proxy-v1.1.2.exe and csi-proxy.exe.old.
func isDaemonName(file string) bool {
	rest, ok := strings.CutPrefix(file, "csi-proxy")
	return ok && !strings.HasPrefix(rest, "ctl") && !strings.HasPrefix(rest, "-sim") && !strings.HasPrefix(rest, "-verify")
}

// originalName returns the name that a program was built with, from its version resource, or "". The text follows its
// key at a multiple of four bytes.
// https://learn.microsoft.com/windows/win32/menurc/string-str
func originalName(path string) string {
	file, err := pe.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	section := file.Section(".rsrc")
	if section == nil {
		return ""
	}
	data, err := section.Data()
	if err != nil {
		return ""
	}
	key := wide("OriginalFilename\x00")
	at := bytes.Index(data, key)
	if at < 0 {
		return ""
	}
	var name []uint16
	for at = (at + len(key) + 3) &^ 3; at+1 < len(data); at += 2 {
		unit := binary.LittleEndian.Uint16(data[at:])
		if unit == 0 {
			break
		}
		name = append(name, unit)
	}
	return string(utf16.Decode(name))
}

// wide is a text as the resources of Windows have it.
func wide(text string) []byte {
	data, _ := binary.Append(nil, binary.LittleEndian, utf16.Encode([]rune(text))) // any slice of numbers is fine
	return data
}
