// Package policy is what the daemon adds to the library: rules about what its callers
// may touch, as decorators around the groups' Interfaces. The library itself has no
// such limits, because a driver that links it already has the rights it runs with.
//
// Callers of the daemon are CSI drivers, but the paths they pass on come from whoever
// can create a pod. The one rule here is that every path of a request lies in a working
// directory.
package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// Policy answers whether a call may touch a path. It is immutable and safe for
// concurrent use.
type Policy struct {
	workingDirs []string // clean
}

// New makes a policy from the directories that requests may touch.
func New(workingDirs []string) (*Policy, error) {
	if len(workingDirs) == 0 {
		return nil, errors.New("no working directory is configured, so no request could be served")
	}
	policy := &Policy{}
	for _, dir := range workingDirs {
		clean, err := winpath.Clean(dir)
		if err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
		policy.workingDirs = append(policy.workingDirs, clean)
	}
	return policy, nil
}

// Inside checks that path is well formed and lies in a working directory, or is one.
func (p *Policy) Inside(op, path string) error {
	_, err := p.clean(op, path)
	return err
}

// Below is Inside for calls that destroy or hide: no working directory is removed, emptied
// or mounted over, nor a directory that holds one.
func (p *Policy) Below(op, path string) error {
	clean, err := p.clean(op, path)
	if err != nil {
		return err
	}
	for _, dir := range p.workingDirs {
		if winpath.Contains(clean, dir) {
			return winerr.New(winerr.Denied, op, clean, "%s is a working directory of csi-proxy, which is never removed, emptied or mounted over", dir)
		}
	}
	return nil
}

// clean returns the canonical form of a path inside the working directories.
func (p *Policy) clean(op, path string) (string, error) {
	clean, err := winpath.Clean(path)
	if err != nil {
		return "", winerr.As(winerr.Invalid, op, "", err, "")
	}
	for _, dir := range p.workingDirs {
		if winpath.Contains(dir, clean) {
			return clean, nil
		}
	}
	return "", winerr.New(winerr.Denied, op, clean,
		"it is outside the directories that csi-proxy may touch (%s); start csi-proxy with -kubelet-path or -working-dir to add one",
		strings.Join(p.workingDirs, ", "))
}
