package cim

import (
	"fmt"
	"strconv"
)

// variants converts parameters to what WMI's scripting interface takes: numbers are
// signed, those of 64 bits are texts, and what go-ole would panic about is an error. Wine's dlls/wbemprox/tests/query.c
// has the types on Windows.
// https://learn.microsoft.com/windows/win32/wmisdk/numbers
func variants(parameters map[string]any) (map[string]any, error) {
	in := make(map[string]any, len(parameters))
	for name, value := range parameters {
		switch value := value.(type) {
		case string, bool, Optional:
			in[name] = value
		case uint8:
			in[name] = int32(value)
		case uint16:
			in[name] = int32(value)
		case uint32:
			in[name] = int32(value) //nolint:gosec // the same bits, in two's complement
		case uint64:
			in[name] = strconv.FormatUint(value, 10)
		default:
			return nil, fmt.Errorf("parameter %s: WMI takes no %T", name, value)
		}
	}
	return in, nil
}

// Optional is a parameter that is left out where the method does not declare it: older versions of
// Windows have fewer.
type Optional bool

// scalar converts a property to one of the few types that Query promises. What it does
// not know, arrays of texts for instance, is nil.
func scalar(value any) any {
	switch value := value.(type) {
	case string, bool, int64:
		return value
	case int8:
		return int64(value)
	case uint8:
		return int64(value)
	case int16:
		return int64(value)
	case uint16:
		return int64(value)
	case int32:
		return int64(value)
	case uint32:
		return int64(value)
	case []any: // scripts get an array of variants
		numbers := make([]int64, 0, len(value))
		for _, element := range value {
			number, ok := scalar(element).(int64)
			if !ok {
				return nil
			}
			numbers = append(numbers, number)
		}
		return numbers
	default:
		return nil
	}
}
