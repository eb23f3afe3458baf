package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestClients(t *testing.T) {
	service := func(version string) string {
		return "syntax = \"proto3\";\npackage " + version + ";\nmessage M {}\nservice Disk { rpc Get(M) returns (M); }\n"
	}
	dir := writeModule(t, map[string]string{
		"api/disk/v1beta1/api.proto": service("v1beta1"),
		"api/disk/v1/api.proto":      service("v1"),
		"api/errors.proto":           "syntax = \"proto3\";\nmessage E {}\n",
	})
	src, err := findSources(filepath.Join(dir, "api"))
	must(t, err)
	req, err := src.compile(t.Context())
	must(t, err)
	files, err := clients(src.modulePath, req)
	must(t, err)
	got := map[string]string{}
	for _, file := range files {
		got[file.GetName()] = file.GetContent()
	}
	if len(got) != 2 {
		t.Fatalf("%d files, want one for each version: %v", len(got), got)
	}
	v1, v1beta1 := got["groups/disk/v1/client.go"], got["groups/disk/v1beta1/client.go"]
	for _, want := range []string{"// Code generated ", "package v1\n", `v1 "example.org/m/api/disk/v1"`, "\tv1.DiskClient\n"} {
		if !strings.Contains(v1, want) {
			t.Errorf("no %q in\n%s", want, v1)
		}
	}
	if advice := "[example.org/m/groups/disk/v1]"; !strings.Contains(v1beta1, advice) || strings.Contains(v1, advice) {
		t.Errorf("%s belongs into v1beta1 only:\n%s\n%s", advice, v1, v1beta1)
	}
}

func TestClients_RefusesOtherLayouts(t *testing.T) {
	src, err := findSources(filepath.Join(writeModule(t, map[string]string{
		"api/disk/api.proto": "syntax = \"proto3\";\nmessage M {}\nservice Disk { rpc Get(M) returns (M); }\n",
	}), "api"))
	must(t, err)
	req, err := src.compile(t.Context())
	must(t, err)
	if _, err := clients(src.modulePath, req); err == nil || !strings.Contains(err.Error(), "api/disk/api.proto") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func TestRecommended(t *testing.T) {
	all := []string{"v1alpha2", "v1beta1", "v1beta10", "v1", "v2alpha1"}
	for version, want := range map[string]string{"v1alpha2": "v1", "v1beta10": "v1", "v1": "", "v2alpha1": ""} {
		if got := recommended(version, all); got != want {
			t.Errorf("instead of %s: %q, want %q", version, got, want)
		}
	}
	for version, want := range map[string]string{"v1alpha9": "v1alpha10", "v1alpha10": ""} {
		if got := recommended(version, []string{"v1alpha9", "v1alpha10"}); got != want {
			t.Errorf("instead of %s, nothing is stable: %q, want %q", version, got, want)
		}
	}
}
