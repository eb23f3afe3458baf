package manifests

import (
	"bytes"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// TestDockerfile: it is one that BuildKit can read, has nothing that would have to run on Windows
// to build it, and holds the programs that the chart starts, with the licences of what is in them.
func TestDockerfile(t *testing.T) {
	result, err := parser.Parse(bytes.NewReader(read(t, "deploy/image/Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Warnings) > 0 {
		t.Errorf("warnings: %+v", result.Warnings)
	}
	copied := ""
	for _, step := range result.AST.Children {
		switch strings.ToUpper(step.Value) {
		case "FROM":
			if base := "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0"; step.Next.Value != base {
				t.Errorf("the base image is %s", step.Next.Value)
			}
		case "COPY":
			copied += step.Original
		case "ARG", "ENV", "LABEL", "ENTRYPOINT":
		default:
			t.Errorf("line %d: %s cannot be done on Linux, or is not expected here", step.StartLine, step.Value)
		}
	}
	for _, name := range []string{"csi-proxy.exe", "csi-proxyctl.exe", "LICENSE", "THIRD_PARTY_NOTICES"} {
		if !strings.Contains(copied, " csi-proxy_${VERSION}_windows_$TARGETARCH/"+name+" ") {
			t.Errorf("%s is not copied", name)
		}
	}
}
