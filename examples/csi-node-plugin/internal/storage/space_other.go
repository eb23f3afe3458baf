//go:build !windows

package storage

import "errors"

func spaceAt(string) (total, free int64, err error) { return 0, 0, errors.ErrUnsupported }
