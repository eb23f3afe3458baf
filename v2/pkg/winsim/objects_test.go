package winsim

import (
	"reflect"
	"slices"
	"testing"
)

// TestObjects_ReachDown checks that objects hold only those that stand below them in objects.
func TestObjects_ReachDown(t *testing.T) {
	above := []reflect.Type{reflect.TypeFor[*Node]()}
	for i := range reflect.TypeFor[objects]().NumField() {
		object := reflect.TypeFor[objects]().Field(i)
		above = append(above, object.Type)
		for i := range object.Type.Elem().NumField() {
			field := object.Type.Elem().Field(i)
			if slices.Contains(above, field.Type) {
				t.Errorf("%v has %s, a %v, which is not below it", object.Type, field.Name, field.Type)
			}
		}
	}
}
