package api_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestLimit_Dependents: a forced stop begins only if all that it stops may be stopped.
func TestLimit_Dependents(t *testing.T) {
	protected := func() []winsim.Service {
		services := family()
		services[2].Name = "Kubelet"
		return services
	}
	proxy := func() []winsim.Service { // installed under another name
		services := family()
		services[2].Proxy = true
		return services
	}
	for name, c := range map[string]struct {
		services []winsim.Service
		list     []string
		culprit  string // empty if it is allowed
	}{
		"all are allowed":           {family(), []string{"base", "MIDDLE", "Top"}, ""},
		"everything is allowed":     {family(), []string{"*"}, ""},
		"one is not":                {family(), []string{"base", "middle"}, "top"},
		"none is":                   {family(), []string{"base"}, "top"},
		"one is protected":          {protected(), []string{"*"}, "Kubelet"},
		"one is csi-proxy itself":   {proxy(), []string{"*"}, "top"},
		"the listed one is itself":  {proxy(), []string{"base", "middle", "top"}, "top"},
		"one is listed but missing": {family(), []string{"base", "top", "x"}, "middle"},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, c.services...)
			host := limited(t, systemapi.NewOn(node), c.list...)
			err := host.StopService("base", true)
			if c.culprit == "" {
				must(t, err)
				return
			}
			if !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), c.culprit+", which depends on it") {
				t.Errorf("%v, want it denied because of %s", err, c.culprit)
			}
			for _, s := range c.services {
				wantState(t, node, winsim.ServiceRunning, s.Name)
			}
			if got := node.Calls()["StopService"]; got != 1 {
				t.Errorf("services were asked to stop %d times, want only base, which refuses", got)
			}
		})
	}
}

// TestLimit_Itself: csi-proxy under any name is known by its process.
func TestLimit_Itself(t *testing.T) {
	node := newNode(t, winsim.Service{Name: "Storage Helper", StartType: winsim.StartAutomatic, Proxy: true})
	host := limited(t, systemapi.NewOn(node), "*")
	for _, force := range []bool{false, true} {
		if err := host.StopService("storage helper", force); !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), "csi-proxy itself") {
			t.Errorf("%v", err)
		}
	}
	wantState(t, node, winsim.ServiceRunning, "Storage Helper")
	if got := node.Calls()["StopService"]; got != 0 {
		t.Errorf("it was asked %d times to stop", got)
	}
	must(t, host.StartService("Storage Helper"))
	// Without a list nothing is refused.
	must(t, systemapi.NewOn(node).StopService("Storage Helper", false))
}

// TestLimit_NewDependent: the list is asked about those, too, that appear later.
func TestLimit_NewDependent(t *testing.T) {
	node := newNode(t, family()...)
	inject(t, node, winsim.Fault{Call: "StopService", Object: "middle", Times: 1, Do: func(n *winsim.Node) {
		if err := n.Add(winsim.Model{Services: []winsim.Service{{Name: "kubelet", DependsOn: []string{"middle"}, State: winsim.ServiceRunning}}}); err != nil {
			t.Error(err)
		}
	}})
	err := limited(t, systemapi.NewOn(node), "*").StopService("base", true)
	if !errors.Is(err, winerr.Denied) {
		t.Error(err)
	}
	wantState(t, node, winsim.ServiceRunning, "base", "middle", "kubelet")
}

func TestLimit_Names(t *testing.T) {
	node := newNode(t, family()...)
	host := limited(t, systemapi.NewOn(node), "top")
	for _, err := range []error{host.StartService("base"), host.StopService("base", false), host.StopService("base", true), host.StopService("missing", false)} {
		if !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), "(top)") {
			t.Errorf("%v, want it denied, with the list", err)
		}
	}
	if len(node.Calls()) != 0 {
		t.Errorf("Windows was asked: %v", node.Calls())
	}
	must(t, host.StopService("TOP", true))
	must(t, host.StartService("TOP"))
	if _, err := host.GetService("base"); err != nil {
		t.Errorf("a question: %v", err)
	}
}
