package metadata

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEC2(t *testing.T) {
	const document = "/latest/dynamic/instance-identity/document"
	service := EC2()
	answer := request(t, service, http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
	token := answer.Body.String()
	if answer.Code != http.StatusOK || token == "" {
		t.Fatalf("no token: %d %q", answer.Code, token)
	}
	for _, c := range []struct {
		method, path, token string
		code                int
	}{
		{method: http.MethodPut, path: "/latest/api/token", code: http.StatusBadRequest},
		{path: document, code: http.StatusUnauthorized},
		{path: document, token: "another", code: http.StatusUnauthorized},
		{path: document, token: token, code: http.StatusOK},
		{path: "/latest/meta-data/network/interfaces/macs", token: token, code: http.StatusOK},
		{path: "/latest/meta-data/network/interfaces/macs/", token: token, code: http.StatusOK},
		{path: "/latest/meta-data/block-device-mapping", token: token, code: http.StatusOK},
		{path: "/latest/meta-data/outpost-arn", token: token, code: http.StatusNotFound}, // not on Outposts
	} {
		answer := request(t, service, c.method, c.path, "X-Aws-Ec2-Metadata-Token", c.token)
		if answer.Code != c.code {
			t.Errorf("%s %s with the token %q: %d, want %d", c.method, c.path, c.token, answer.Code, c.code)
		}
	}
}

func TestComputeEngine(t *testing.T) {
	service := ComputeEngine()
	for _, c := range []struct {
		path, flavor string
		code         int
	}{
		{path: "instance/zone", code: http.StatusForbidden},
		{path: "instance/zone", flavor: "Google", code: http.StatusOK},
		{path: "instance/name", flavor: "Google", code: http.StatusOK},
		{path: "instance/machine-type", flavor: "Google", code: http.StatusOK},
		{path: "project/project-id", flavor: "Google", code: http.StatusOK},
		{path: "instance/attributes/unknown", flavor: "Google", code: http.StatusNotFound},
	} {
		answer := request(t, service, http.MethodGet, "/computeMetadata/v1/"+c.path, "Metadata-Flavor", c.flavor)
		if answer.Code != c.code {
			t.Errorf("%s with the flavor %q: %d, want %d", c.path, c.flavor, answer.Code, c.code)
		}
		// By this header clients tell the server from another one.
		if got := answer.Header().Get("Metadata-Flavor"); (answer.Code == http.StatusOK) != (got == "Google") {
			t.Errorf("%s: %d with the flavor %q", c.path, answer.Code, got)
		}
	}
}

// request makes a request with a header, if it has a value.
func request(t *testing.T, service http.Handler, method, path, header, value string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	if value != "" {
		r.Header.Set(header, value)
	}
	answer := httptest.NewRecorder()
	service.ServeHTTP(answer, r)
	return answer
}
