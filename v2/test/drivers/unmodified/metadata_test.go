package unmodified

import (
	"fmt"
	"net/http"
)

// What drivers ask the metadata service of their cloud about the machine they run on: one machine per cloud, and only the
// paths that drivers read.

// ec2Metadata is the instance metadata service of Amazon EC2, version 2: each request needs a token.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
func ec2Metadata() http.Handler {
	const granted, lifetime = "granted", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(lifetime) == "" {
			http.Error(w, "the lifetime of the token is missing", http.StatusBadRequest)
			return
		}
		w.Header().Set(lifetime, r.Header.Get(lifetime))
		fmt.Fprint(w, granted)
	})
	for path, text := range map[string]string{
		"dynamic/instance-identity/document": `{"accountId": "123456789012", "architecture": "x86_64", ` +
			`"availabilityZone": "eu-central-1a", "imageId": "ami-0123456789abcdef0", ` +
			`"instanceId": "i-0123456789abcdef0", "instanceType": "m5.large", "region": "eu-central-1"}`,
		"meta-data/network/interfaces/macs": "02:00:00:00:00:01/",
		"meta-data/block-device-mapping":    "ami\nroot",
	} {
		serve := func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Aws-Ec2-Metadata-Token") != granted {
				http.Error(w, "the token is missing", http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, text)
		}
		mux.HandleFunc("GET /latest/"+path, serve)
		mux.HandleFunc("GET /latest/"+path+"/{$}", serve)
	}
	return mux
}

// computeEngineMetadata is the metadata server of Google Compute Engine.
// https://cloud.google.com/compute/docs/metadata/querying-metadata
func computeEngineMetadata() http.Handler {
	const header, flavor = "Metadata-Flavor", "Google"
	mux := http.NewServeMux()
	for path, text := range map[string]string{
		"instance/machine-type": "projects/123456789012/machineTypes/n2-standard-2",
		"instance/name":         "node-1",
		"instance/zone":         "projects/123456789012/zones/us-central1-a",
		"project/project-id":    "project-1",
	} {
		mux.HandleFunc("GET /computeMetadata/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(header) != flavor {
				http.Error(w, "the header "+header+" is missing", http.StatusForbidden)
				return
			}
			w.Header().Set(header, flavor)
			fmt.Fprint(w, text)
		})
	}
	return mux
}
