//go:build !windows

package installation

import "github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"

func accessOf(string) (Access, error) { return Access{}, scm.ErrNotWindows }
