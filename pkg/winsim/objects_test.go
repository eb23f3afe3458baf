package winsim

import (
	"reflect"
	"slices"
	"testing"
)

// TestObjects_ReachDown checks that objects hold only those that stand below them in objects.
func TestObjects_ReachDown(t *testing.T) {
	above := []reflect.Type{reflect.TypeFor[*Node]()}
	for object := range reflect.TypeFor[objects]().Fields() {
		above = append(above, object.Type)
		for field := range object.Type.Elem().Fields() {
			if slices.Contains(above, field.Type) {
				t.Errorf("%v has %s, a %v, which is not below it", object.Type, field.Name, field.Type)
			}
		}
	}
}
