// Versioninfo writes the version resource of a Windows program, which Explorer shows in a file's
// properties and inventory tools collect. The Go linker picks up the file by its name, in the
// directory of the program's main package:
//
//	versioninfo -version v2.0.0 -commit 1f94e68 -date 2026-11-15T08:00:00Z v2/cmd/csi-proxy
//
// writes v2/cmd/csi-proxy/version_windows_amd64.syso and the same for arm64. They depend only on the
// version, the commit, its date and the name of the directory.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tc-hib/winres"
	"github.com/tc-hib/winres/version"
)

func main() {
	var b build
	flag.StringVar(&b.version, "version", "", "the `version`, such as v2.0.0")
	flag.StringVar(&b.commit, "commit", "", "the `name` of the commit")
	flag.Func("date", "the `time` of the commit, such as 2026-11-15T08:00:00Z", func(text string) (err error) {
		b.date, err = time.Parse(time.RFC3339, text)
		return err
	})
	flag.Parse()
	if b.version == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: versioninfo -version VERSION [-commit COMMIT] [-date DATE] DIRECTORY...")
		os.Exit(2)
	}
	for _, dir := range flag.Args() {
		if err := b.write(dir); err != nil {
			fmt.Fprintf(os.Stderr, "versioninfo: %v\n", err)
			os.Exit(1)
		}
	}
}

// build identifies the source of the programs.
type build struct {
	version, commit string
	date            time.Time // of the commit
}

// descriptions are by the names of the programs' directories.
var descriptions = map[string]string{
	"csi-proxy":     "Storage operations of this node, for CSI drivers",
	"csi-proxyctl":  "Command line of CSI Proxy",
	"csi-proxy-sim": "An emulated Windows storage node",
}

// write writes the resource of the program in a directory, for all architectures. It does not touch
// a file with the right content, so that the program is not linked again.
func (b build) write(dir string) error {
	info, err := b.resource(filepath.Base(dir))
	if err != nil {
		return err
	}
	var resources winres.ResourceSet
	resources.SetVersionInfo(info)
	for _, arch := range []winres.Arch{winres.ArchAMD64, winres.ArchARM64} {
		var object bytes.Buffer
		if err := resources.WriteObject(&object, arch); err != nil {
			return err
		}
		file := filepath.Join(dir, "version_windows_"+string(arch)+".syso")
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, object.Bytes()) {
			continue
		}
		if err := os.WriteFile(file, object.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// english is the language of the resource: US English, as in most programs.
const english = 0x409

func (b build) resource(program string) (version.Info, error) {
	var info version.Info
	info.FileVersion = numbers(b.version)
	info.ProductVersion = info.FileVersion
	info.Timestamp = b.date
	description, known := descriptions[program]
	if !known {
		return info, fmt.Errorf("%s: the program has no description; add it to tools/versioninfo/main.go", program)
	}
	for key, value := range map[string]string{
		version.ProductName:      "CSI Proxy",
		version.FileDescription:  description,
		version.InternalName:     program,
		version.OriginalFilename: program + ".exe",
		version.FileVersion:      b.version,
		version.ProductVersion:   b.version,
		version.LegalCopyright:   "Apache License 2.0",
		version.Comments:         b.comment(),
	} {
		if err := info.Set(english, key, value); err != nil {
			return info, err
		}
	}
	return info, nil
}

// comment returns commit and date as text: Explorer does not show the date field of the resource.
func (b build) comment() string {
	if b.date.IsZero() {
		return b.commit
	}
	return strings.TrimSpace(b.commit + " " + b.date.UTC().Format(time.RFC3339))
}

var leadingNumbers = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})`)

// numbers returns the numbers at the beginning of a version, which Windows compares. They are zero
// for a build that is not a release, so it is older than any release.
func numbers(v string) (parts [4]uint16) {
	if found := leadingNumbers.FindStringSubmatch(v); found != nil {
		for i, digits := range found[1:] {
			n, _ := strconv.ParseUint(digits, 10, 16) // four digits at most
			parts[i] = uint16(n)
		}
	}
	return parts
}
