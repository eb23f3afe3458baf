package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"path"
	"regexp"
	"strings"
	"text/template"

	"golang.org/x/mod/semver"
	"google.golang.org/protobuf/types/pluginpb"
)

//go:embed client.tmpl
var clientText string

var clientTemplate = template.Must(template.New("client.tmpl").Parse(clientText))

// api is one version of an API group, api/<group>/<version>/api.proto with one service.
type api struct {
	Module, Group, Version, Service string
	// Recommended is the version that new code uses instead, or empty if that is this one.
	Recommended string
}

// clients renders a client package for each API in req, as files relative to the module.
func clients(module string, req *pluginpb.CodeGeneratorRequest) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	var apis []api
	versions := map[string][]string{} // by group
	for _, file := range req.ProtoFile {
		below, ok := strings.CutPrefix(path.Dir(file.GetName()), module+"/api/")
		if !ok || len(file.Service) == 0 {
			continue
		}
		group, version, ok := strings.Cut(below, "/")
		if !ok || !versionName.MatchString(version) || len(file.Service) != 1 {
			return nil, fmt.Errorf("%s: want one service in %s/api/<group>/<version>", file.GetName(), module)
		}
		apis = append(apis, api{Module: module, Group: group, Version: version, Service: file.Service[0].GetName()})
		versions[group] = append(versions[group], version)
	}
	var files []*pluginpb.CodeGeneratorResponse_File
	for _, a := range apis {
		a.Recommended = recommended(a.Version, versions[a.Group])
		var text bytes.Buffer
		if err := clientTemplate.Execute(&text, a); err != nil {
			return nil, err
		}
		code, err := format.Source(text.Bytes())
		if err != nil {
			return nil, fmt.Errorf("client of %s/%s: %w", a.Group, a.Version, err)
		}
		files = append(files, &pluginpb.CodeGeneratorResponse_File{
			Name:    new(path.Join("groups", a.Group, a.Version, "client.go")),
			Content: new(string(code)),
		})
	}
	return files, nil
}

// recommended returns the newest stable version, or the newest if none is stable. It returns ""
// if version is as new as that.
func recommended(version string, versions []string) string {
	best := ""
	for _, v := range versions {
		stable, bestStable := semver.Prerelease(ordered(v)) == "", semver.Prerelease(ordered(best)) == ""
		if best == "" || stable && !bestStable || stable == bestStable && semver.Compare(ordered(v), ordered(best)) > 0 {
			best = v
		}
	}
	if semver.Compare(ordered(version), ordered(best)) >= 0 {
		return ""
	}
	return best
}

var versionName = regexp.MustCompile(`^v([0-9]+)(?:(alpha|beta)([0-9]+))?$`)

// ordered returns an API version as a semantic one: v1beta2 as v1.0.0-beta.2.
func ordered(version string) string {
	m := versionName.FindStringSubmatch(version)
	switch {
	case m == nil:
		return ""
	case m[2] == "":
		return fmt.Sprintf("v%s.0.0", m[1])
	default:
		return fmt.Sprintf("v%s.0.0-%s.%s", m[1], m[2], m[3])
	}
}
