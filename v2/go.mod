module github.com/kubernetes-csi/csi-proxy/v2

go 1.25.0

toolchain go1.26.8

require (
	github.com/go-logr/logr v1.4.2
	github.com/go-ole/go-ole v1.3.0
	github.com/google/go-cmp v0.6.0
	go.yaml.in/yaml/v3 v3.0.3
	golang.org/x/sys v0.30.0
	k8s.io/klog/v2 v2.130.1
)
