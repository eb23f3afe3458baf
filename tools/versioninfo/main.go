// Versioninfo writes the version resource of a Windows program: what Explorer shows in a file's
// properties, and inventories of machines collect. It is a file that the Go linker picks up by its
// name, in the directory of the program's main package:
//
//	versioninfo -version v2.0.0 cmd/csi-proxy
//
// writes cmd/csi-proxy/version_windows_amd64.syso and the same for arm64. They depend on the
// version, the commit and the name of the directory alone.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/tc-hib/winres"
	"github.com/tc-hib/winres/version"
)

func main() {
	v := flag.String("version", "", "the `version`, such as v2.0.0")
	commit := flag.String("commit", "", "the `name` of the commit")
	flag.Parse()
	if *v == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: versioninfo -version VERSION [-commit COMMIT] DIRECTORY...")
		os.Exit(2)
	}
	for _, dir := range flag.Args() {
		if err := write(dir, *v, *commit); err != nil {
			fmt.Fprintf(os.Stderr, "versioninfo: %v\n", err)
			os.Exit(1)
		}
	}
}

// descriptions are of the programs, by the names of their directories.
var descriptions = map[string]string{
	"csi-proxy":     "Storage operations of this node, for CSI drivers",
	"csi-proxyctl":  "Command line of CSI Proxy",
	"csi-proxy-sim": "An emulated Windows storage node",
}

// write writes the resource of the program in a directory, for all architectures. A file that has
// the right content is left alone, so that nothing is linked anew.
func write(dir, version, commit string) error {
	program := filepath.Base(dir)
	info, err := resource(program, version, commit)
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

// english is the language of the resource: that of the United States, as in most programs.
const english = 0x409

// resource describes a program.
func resource(program, v, commit string) (version.Info, error) {
	var info version.Info
	info.FileVersion = numbers(v)
	info.ProductVersion = info.FileVersion
	description, known := descriptions[program]
	if !known {
		return info, fmt.Errorf("%s: there is no description of this program", program)
	}
	for key, value := range map[string]string{
		version.ProductName:      "CSI Proxy",
		version.FileDescription:  description,
		version.InternalName:     program,
		version.OriginalFilename: program + ".exe",
		version.FileVersion:      v,
		version.ProductVersion:   v,
		version.LegalCopyright:   "Apache License 2.0",
		version.Comments:         commit,
	} {
		if err := info.Set(english, key, value); err != nil {
			return info, err
		}
	}
	return info, nil
}

var leadingNumbers = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})`)

// numbers returns the numbers a version begins with. Windows compares these; a build that is no
// release has zeros, and is older than any other.
func numbers(v string) (parts [4]uint16) {
	if found := leadingNumbers.FindStringSubmatch(v); found != nil {
		for i, digits := range found[1:] {
			n, _ := strconv.ParseUint(digits, 10, 16) // four digits at most
			parts[i] = uint16(n)
		}
	}
	return parts
}
