// Image makes the image of the HostProcess container from a release's archive for Windows, without a container engine:
//
//	image -archive dist/csi-proxy_v1.4.0_windows_amd64.zip -base NAME -tag registry.example/csi-proxy:v1.4.0 -output image.tar
//
// 'make image' runs it, and crane pushes the result. The same input gives the same bytes on every machine. 'crane mutate'
// makes the same layer, but leaves the base's time and settings in the image, and needs a registry even without a base.
package main

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

var files = []string{"LICENSE", "THIRD_PARTY_NOTICES", "csi-proxy.exe", "csi-proxyctl.exe"}

func main() {
	archive := flag.String("archive", "", "the `file` csi-proxy_VERSION_windows_ARCHITECTURE.zip")
	base := flag.String("base", "", "`name` of the base image (default: none, for a look at the rest)")
	tag := flag.String("tag", "csi-proxy", "`name` of the image in the output")
	output := flag.String("output", "image.tar", "`file` to write, as docker save does")
	commit := flag.String("commit", "", "`commit` of the source")
	date := flag.String("date", "", "`time` of the image and its files, such as 2026-11-15T08:00:00Z")
	home := flag.String("home", "", "`address` of the project, if it has one")
	flag.Parse()
	created, err := time.Parse(time.RFC3339, *date)
	if err != nil {
		log.Fatal(err)
	}
	image, err := build(*archive, *base, created.UTC(), map[string]string{"revision": *commit, "source": *home})
	if err == nil {
		err = crane.Save(image, *tag, *output)
	}
	if err != nil {
		log.Fatal(err)
	}
}

var archiveName = regexp.MustCompile(`^(csi-proxy_(v.*)_windows_([a-z0-9]+))\.zip$`)

// build returns the image. Microsoft's base has no Windows, only the empty registry that a node looks for in an image
// of Windows, so the image works with all versions.
func build(archive, base string, date time.Time, labels map[string]string) (v1.Image, error) {
	name := archiveName.FindStringSubmatch(filepath.Base(archive))
	if name == nil {
		return nil, fmt.Errorf("%q is not the name of an archive for Windows", archive)
	}
	layer, err := os.CreateTemp("", "layer-*.tar")
	if err != nil {
		return nil, err
	}
	defer os.Remove(layer.Name())
	if err := errors.Join(pack(layer, archive, name[1], date), layer.Close()); err != nil {
		return nil, err
	}

	platform := v1.Platform{OS: "windows", Architecture: name[3]}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: platform.OS, Architecture: platform.Architecture, RootFS: v1.RootFS{Type: "layers"}})
	if base != "" {
		if image, err = crane.Pull(base, crane.WithPlatform(&platform)); err == nil {
			var digest v1.Hash
			digest, err = image.Digest()
			labels["base.name"], labels["base.digest"] = base, digest.String()
		}
	}
	if err == nil {
		image, err = crane.Append(image, layer.Name()) // in the form of Windows, which the base says it is
	}
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		return nil, fmt.Errorf("the base is for %s/%s, the programs are for %s", config.OS, config.Architecture, platform)
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: date}
	config.Config = v1.Config{Entrypoint: []string{"csi-proxy.exe"}, Env: []string{`PATH=C:\Windows\system32;C:\Windows;`}, Labels: map[string]string{}}
	labels["title"], labels["licenses"], labels["version"], labels["created"] = "csi-proxy", "Apache-2.0", name[2], date.Format(time.RFC3339)
	for key, value := range labels {
		if value != "" {
			config.Config.Labels["org.opencontainers.image."+key] = value
		}
	}
	return mutate.ConfigFile(image, config)
}

// pack writes the files of an archive's directory that the image has.
func pack(layer io.Writer, archive, dir string, date time.Time) error {
	packed, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer packed.Close()
	out := tar.NewWriter(layer)
	for _, name := range files {
		content, err := fs.ReadFile(packed, dir+"/"+name)
		if err == nil {
			err = out.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), ModTime: date})
		}
		if err == nil {
			_, err = out.Write(content)
		}
		if err != nil {
			return err
		}
	}
	return out.Close()
}
