package winsim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// Model says what a node contains. The YAML form has the same fields; see LoadModel.
type Model struct {
	// Seed makes random faults reproducible.
	Seed uint64 `yaml:"seed"`
	// RealTime makes the node's own waits take their time. Tests leave it off.
	RealTime bool `yaml:"realTime"`
	// Volumes are the volumes of the node. One of them must have a drive letter
	// for Files to stand on.
	Volumes []Volume `yaml:"volumes"`
	// Files are the directories, files and links that exist at the start, made
	// in this order. Missing parents are created.
	Files []File `yaml:"files"`
}

// Volume is a volume of the node.
type Volume struct {
	// ID is the GUID in \\?\Volume{GUID}\, with or without that decoration.
	ID string `yaml:"id"`
	// Letter is the drive letter, or empty for a volume without one.
	Letter string `yaml:"letter"`
	// State is empty for a healthy volume, or one of the ways to be unusable.
	State VolumeState `yaml:"state"`
}

// VolumeState says how a volume answers when it is accessed.
type VolumeState string

// The states of a volume.
const (
	Healthy  VolumeState = ""
	Raw      VolumeState = "raw"       // no recognised file system: error 1005
	NotReady VolumeState = "not-ready" // offline or dying: error 21
	Gone     VolumeState = "gone"      // no longer there, but still referred to: error 2
)

func (s VolumeState) known() bool {
	switch s {
	case Healthy, Raw, NotReady, Gone:
		return true
	default:
		return false
	}
}

// File is one entry of the node's file tree: a directory, unless one of the other
// fields makes it something else.
type File struct {
	Path      string `yaml:"path"`
	Content   string `yaml:"content"`   // makes it a file with this content
	EmptyFile bool   `yaml:"emptyFile"` // makes it a file without content
	Symlink   string `yaml:"symlink"`   // makes it a directory symbolic link to this target
	Junction  string `yaml:"junction"`  // makes it a junction to this directory
	Volume    string `yaml:"volume"`    // makes it a mounted folder of the volume with this ID
	ReadOnly  bool   `yaml:"readOnly"`  // sets the read-only attribute
}

// ModelError names the field of a model, or of a list of faults, that is wrong.
type ModelError struct {
	File    string // where the model was loaded from, if it was
	Line    int    // 0 if not loaded from YAML
	Field   string // such as files[2].symlink; empty for a syntax error
	Problem string
}

func (e *ModelError) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "%s: ", e.Field)
	}
	b.WriteString(e.Problem)
	return b.String()
}

func field(list string, i int, name string) string {
	return fmt.Sprintf("%s[%d].%s", list, i, name)
}

var guid = regexp.MustCompile(`^(?i)(?:\\\\\?\\Volume)?\{?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\}?\\?$`)

// normalGUID returns the bare GUID of a volume id in lower case, or "".
func normalGUID(id string) string {
	match := guid.FindStringSubmatch(id)
	if match == nil {
		return ""
	}
	return strings.ToLower(match[1])
}

func (m Model) validate() error {
	ids, letters := map[string]bool{}, map[string]bool{}
	for i, v := range m.Volumes {
		id, letter := normalGUID(v.ID), winpath.Fold(v.Letter)
		switch {
		case id == "":
			return &ModelError{Field: field("volumes", i, "id"), Problem: fmt.Sprintf("%q is not a GUID", v.ID)}
		case ids[id]:
			return &ModelError{Field: field("volumes", i, "id"), Problem: fmt.Sprintf("%q is used twice", v.ID)}
		case letter != "" && (len(letter) != 1 || letter < "A" || letter > "Z"):
			return &ModelError{Field: field("volumes", i, "letter"), Problem: fmt.Sprintf("%q is not a drive letter", v.Letter)}
		case letter != "" && letters[letter]:
			return &ModelError{Field: field("volumes", i, "letter"), Problem: fmt.Sprintf("%q is used twice", v.Letter)}
		}
		if !v.State.known() {
			return &ModelError{Field: field("volumes", i, "state"), Problem: fmt.Sprintf("%q is none of %q, %q, %q", v.State, Raw, NotReady, Gone)}
		}
		ids[id], letters[letter] = true, true
	}
	for i, f := range m.Files {
		if err := f.validate(ids); err != nil {
			err.Field = field("files", i, err.Field)
			return err
		}
	}
	return nil
}

func (f File) validate(volumes map[string]bool) *ModelError {
	if err := winpath.Validate(f.Path); err != nil {
		return &ModelError{Field: "path", Problem: err.Error()}
	}
	natures := 0
	for _, given := range []bool{f.Content != "", f.EmptyFile, f.Symlink != "", f.Junction != "", f.Volume != ""} {
		if given {
			natures++
		}
	}
	if natures > 1 {
		return &ModelError{Field: "path", Problem: fmt.Sprintf("%s cannot have more than one of content, emptyFile, symlink, junction and volume", f.Path)}
	}
	if f.Junction != "" {
		if err := winpath.Validate(f.Junction); err != nil {
			return &ModelError{Field: "junction", Problem: err.Error()}
		}
	}
	if f.Volume != "" && !volumes[normalGUID(f.Volume)] {
		return &ModelError{Field: "volume", Problem: fmt.Sprintf("%q is not among the node's volumes (state %q makes one that is gone)", f.Volume, Gone)}
	}
	return nil
}
