module github.com/kubernetes-csi/csi-proxy/mounter/mountertest

go 1.26.0

toolchain go1.26.8

require (
	github.com/go-logr/logr v1.4.4
	github.com/kubernetes-csi/csi-proxy/client v1.3.0
	github.com/kubernetes-csi/csi-proxy/mounter v0.0.0-00010101000000-000000000000
	github.com/kubernetes-csi/csi-proxy/v2 v2.0.0-00010101000000-000000000000
	github.com/kubernetes-csi/csi-proxy/v2/cmd v0.0.0-00010101000000-000000000000
	google.golang.org/grpc v1.85.0
	k8s.io/klog/v2 v2.140.0
	k8s.io/mount-utils v0.37.2
)

require (
	github.com/Microsoft/go-winio v0.6.4 // indirect
	github.com/go-ole/go-ole v1.3.0 // indirect
	github.com/moby/sys/mountinfo v0.7.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	k8s.io/utils v0.0.0-20260626114624-be93311217bd // indirect
)

replace (
	github.com/kubernetes-csi/csi-proxy/client => ../../client
	github.com/kubernetes-csi/csi-proxy/mounter => ../
	github.com/kubernetes-csi/csi-proxy/v2 => ../../v2
	github.com/kubernetes-csi/csi-proxy/v2/cmd => ../../v2/cmd
)
