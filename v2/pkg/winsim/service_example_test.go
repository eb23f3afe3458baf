package winsim_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver for iSCSI starts its service and identifies the machine.
func ExampleNode_System() {
	node, err := winsim.New(winsim.VSphere())
	if err != nil {
		log.Fatal(err)
	}
	machine, err := system.New(node.System())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	serial, err := machine.GetBIOSSerialNumber(ctx, &system.GetBIOSSerialNumberRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(serial.SerialNumber)
	if _, err := machine.StartService(ctx, &system.StartServiceRequest{Name: "MSiSCSI"}); err != nil {
		log.Fatal(err)
	}
	info, err := node.ServiceInfo("MSiSCSI")
	fmt.Println(info.DisplayName, "is", info.State, err)
	// Output:
	// VMware-42 1a 3b 5c 7d 9e b0 c1-d2 e3 f4 05 16 27 38 49
	// Microsoft iSCSI Initiator Service is running <nil>
}
