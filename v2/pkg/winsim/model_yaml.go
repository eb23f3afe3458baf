package winsim

import (
	"errors"
	"io"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/strictyaml"
)

// LoadModel reads a Model in YAML. Errors are *ModelError with name, usually of the file, the line and the field.
//
//	volumes:
//	  - {id: 0c51a9e0-0000-0000-0000-100000000000, letter: C}
//	files:
//	  - {path: 'C:\var\lib\kubelet\link', symlink: 'C:\var\lib\kubelet\pods'}
func LoadModel(r io.Reader, name string) (Model, error) {
	var model Model
	document, err := strictyaml.Decode(r, name, &model)
	if err != nil {
		return Model{}, loadError(err)
	}
	// Some mistakes show only when the node is created, such as a file in the place of a
	// directory.
	if _, err := New(model); err != nil {
		return model, locate(document, err)
	}
	return model, nil
}

// LoadFaults reads a list of Faults in YAML.
//
//	faults:
//	  - {call: CreateDirectory, object: 'C:\var\*', nth: 2, times: 1, error: 5}
func LoadFaults(r io.Reader, name string) ([]Fault, error) {
	var list struct {
		Faults []Fault `yaml:"faults"`
	}
	document, err := strictyaml.Decode(r, name, &list)
	if err != nil {
		return nil, loadError(err)
	}
	for i, f := range list.Faults {
		if err := f.validate(); err != nil {
			err.Field = field("faults", i, err.Field)
			return nil, locate(document, err)
		}
	}
	return list.Faults, nil
}

// loadError makes the error of a document one of a model.
func loadError(err error) error {
	if problem := (*strictyaml.Error)(nil); errors.As(err, &problem) {
		return (*ModelError)(problem)
	}
	return err
}

// locate adds file and line to an error that names a field of a document.
func locate(document *strictyaml.Document, err error) error {
	var problem *ModelError
	if !errors.As(err, &problem) {
		return err
	}
	return (*ModelError)(document.Locate((*strictyaml.Error)(problem)))
}
