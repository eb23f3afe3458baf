module github.com/kubernetes-csi/csi-proxy/examples

go 1.26.0

toolchain go1.26.8

require (
	github.com/container-storage-interface/spec v1.12.0
	github.com/go-logr/logr v1.4.4
	github.com/kubernetes-csi/csi-proxy/client v1.3.0
	github.com/kubernetes-csi/csi-proxy/mounter v0.0.0-00010101000000-000000000000
	github.com/kubernetes-csi/csi-proxy/mounter/mountertest v0.0.0-00010101000000-000000000000
	github.com/kubernetes-csi/csi-proxy/v2 v2.0.0-00010101000000-000000000000
	github.com/kubernetes-csi/csi-proxy/v2/cmd v0.0.0-00010101000000-000000000000
	github.com/kubernetes-csi/csi-test/v5 v5.5.0
	github.com/onsi/ginkgo/v2 v2.32.1
	github.com/onsi/gomega v1.42.1
	go.yaml.in/yaml/v3 v3.0.5
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	k8s.io/klog/v2 v2.140.0
)

require (
	github.com/Masterminds/semver/v3 v3.4.0 // indirect
	github.com/Microsoft/go-winio v0.6.4 // indirect
	github.com/go-ole/go-ole v1.3.0 // indirect
	github.com/go-task/slim-sprig/v3 v3.0.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/pprof v0.0.0-20260402051712-545e8a4df936 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/moby/sys/mountinfo v0.7.2 // indirect
	go.uber.org/mock v0.6.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
	k8s.io/mount-utils v0.37.2 // indirect
	k8s.io/utils v0.0.0-20260626114624-be93311217bd // indirect
)

replace (
	github.com/kubernetes-csi/csi-proxy/client => ../client
	github.com/kubernetes-csi/csi-proxy/mounter => ../mounter
	github.com/kubernetes-csi/csi-proxy/mounter/mountertest => ../mounter/mountertest
	github.com/kubernetes-csi/csi-proxy/v2 => ../v2
	github.com/kubernetes-csi/csi-proxy/v2/cmd => ../v2/cmd
)
