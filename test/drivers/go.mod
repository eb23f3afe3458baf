module github.com/kubernetes-csi/csi-proxy/v2/test/drivers

go 1.26.0

replace (
	github.com/kubernetes-csi/csi-proxy/client => ../../client
	github.com/kubernetes-csi/csi-proxy/v2 => ../..
)
