package winsim

import (
	"maps"
	"slices"
)

// SystemVolume is the id of drive C: in the presets.
const SystemVolume = `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`

// presets are the models that come with the package, by name.
var presets = map[string]func() Model{
	"default": Default,
}

// Default is a node as kubelet leaves it: drive C: with the kubelet's directories.
func Default() Model {
	return Model{
		Volumes: []Volume{{ID: SystemVolume, Letter: "C"}},
		Files: []File{
			{Path: `C:\Windows\System32\drivers\etc\hosts`, Content: "127.0.0.1 localhost\r\n"},
			{Path: `C:\var\lib\kubelet\plugins`},
			{Path: `C:\var\lib\kubelet\pods`},
		},
	}
}

// Presets lists the names that Preset takes.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// Preset returns the model of that name, for the caller to adjust.
func Preset(name string) (Model, bool) {
	preset, ok := presets[name]
	if !ok {
		return Model{}, false
	}
	return preset(), true
}
