module github.com/kubernetes-csi/csi-proxy/mounter

go 1.25.0

toolchain go1.26.8

require (
	github.com/kubernetes-csi/csi-proxy/client v1.3.0
	github.com/kubernetes-csi/csi-proxy/v2 v2.0.0-00010101000000-000000000000
	google.golang.org/grpc v1.64.1
	google.golang.org/protobuf v1.33.0
	k8s.io/klog/v2 v2.130.1
	k8s.io/mount-utils v0.28.0
	k8s.io/utils v0.0.0-20230406110748-d93618cff8a2
)

require (
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/go-ole/go-ole v1.3.0 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/moby/sys/mountinfo v0.6.2 // indirect
	go.yaml.in/yaml/v3 v3.0.3 // indirect
	golang.org/x/net v0.26.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
	golang.org/x/text v0.16.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240318140521-94a12d6c2237 // indirect
)

replace (
	github.com/kubernetes-csi/csi-proxy/client => ../client
	github.com/kubernetes-csi/csi-proxy/v2 => ../v2
)
