package winsim

import (
	"reflect"
	"slices"
	"testing"
)

// TestObjects_ReachDown checks that objects hold only those that stand below them in objects.
func TestObjects_ReachDown(t *testing.T) {
	var order []reflect.Type
	for i := range reflect.TypeFor[objects]().NumField() {
		order = append(order, reflect.TypeFor[objects]().Field(i).Type)
	}
	order = slices.Insert(order, 0, reflect.TypeFor[*Node]())
	for i, object := range order[1:] {
		for j := range object.Elem().NumField() {
			field := object.Elem().Field(j)
			if slices.Contains(order[:i+2], field.Type) {
				t.Errorf("%v has %s, a %v, which is not below it", object, field.Name, field.Type)
			}
		}
	}
}
