//go:build !windows

package cim

import (
	"errors"
	"fmt"
)

func connect() (connection, error) { return nil, fmt.Errorf("WMI: %w", errors.ErrUnsupported) }
