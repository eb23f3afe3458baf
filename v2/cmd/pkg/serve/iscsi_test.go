package serve_test

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/klog/v2"

	iscsiclientv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha1"
	iscsiclientv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/groups/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var iscsiVersions = []clientVersion{
	{"v1alpha1", untyped(iscsiclientv1alpha1.NewClientWithPipePath)},
	{"v1alpha2", untyped(iscsiclientv1alpha2.NewClientWithPipePath)},
}

// The targets of the default node.
const (
	openTarget    = "iqn.2025-01.com.example:open"
	guardedTarget = "iqn.2025-01.com.example:guarded"
)

// TestConformance_ISCSI runs the suite through every version's own client.
func TestConformance_ISCSI(t *testing.T) {
	for _, version := range iscsiVersions {
		t.Run(version.name, func(t *testing.T) {
			hosttest.ISCSI(t, func(t *testing.T) hosttest.ISCSINode {
				t.Helper()
				model := winsim.Default()
				for i := range model.ISCSI.Targets {
					model.ISCSI.Targets[i].Portals = []string{"10.0.0.10"}
				}
				model.ISCSI.Portals = append(model.ISCSI.Portals, winsim.ISCSIPortal{Address: "10.0.0.12", Down: true}, winsim.ISCSIPortal{Address: "fd00::1"})
				model.ISCSI.Targets = append(model.ISCSI.Targets, winsim.ISCSITarget{IQN: "iqn.2025-01.com.example:other", Portals: []string{"fd00::1"}})
				node, err := winsim.New(model)
				must(t, err)
				disks, diskErr := disk.New(node.Disk())
				volumes, volumeErr := volume.New(node.Volume())
				must(t, errors.Join(diskErr, volumeErr))
				api := dialRemote(t, version.newClient, run(t, node, "iscsi/"+version.name), "iscsi", version.name)
				n := hosttest.ISCSINode{
					API:          remoteISCSI{api},
					Portal:       &iscsi.TargetPortal{TargetAddress: "10.0.0.10", TargetPort: 3260},
					Dead:         &iscsi.TargetPortal{TargetAddress: "10.0.0.12", TargetPort: 3260},
					Other:        &iscsi.TargetPortal{TargetAddress: "fd00::1", TargetPort: 3260},
					OtherTarget:  "iqn.2025-01.com.example:other",
					Open:         openTarget,
					OpenDisks:    1,
					Guarded:      guardedTarget,
					User:         "winsim",
					Secret:       "winsim-secret-1",
					MutualSecret: "winsim-mutual-1",
					Missing:      "iqn.2025-01.com.example:missing",
					SetService:   func(state string) error { return node.SetServiceState("MSiSCSI", winsim.ServiceState(state)) },
					Hold:         node.Hold,
					Disks:        disks,
					Volumes:      volumes,
					Root:         `C:\var\lib\kubelet\plugins`,
					WriteFile:    node.WriteFile,
					ReadFile:     node.ReadFile,
				}
				if !api.has("SetMutualChapSecret") {
					n.Lacks = []string{"SetMutualChapSecret"}
				}
				return n
			})
		})
	}
}

// remoteISCSI makes the group's Interface of any version's client.
type remoteISCSI struct{ remote }

// ask makes a call about a portal, and a target if its name is in values.
func (r remoteISCSI) ask(ctx context.Context, method string, portal *iscsi.TargetPortal, values fields) (response, error) {
	if values == nil {
		values = fields{}
	}
	if portal != nil {
		values["target_portal"] = fields{"target_address": portal.TargetAddress, "target_port": portal.TargetPort}
	}
	out, err := r.call(ctx, method, values)
	if err != nil {
		return response{}, fmt.Errorf("%w: %w", standardErrors[status.Code(err)], err)
	}
	return out, nil
}

// texts reads a list of texts.
func (r response) texts(name protoreflect.Name) (texts []string) {
	list := r.message.Get(r.message.Descriptor().Fields().ByName(name)).List()
	for i := range list.Len() {
		texts = append(texts, list.Get(i).String())
	}
	return texts
}

func (r remoteISCSI) AddTargetPortal(ctx context.Context, in *iscsi.AddTargetPortalRequest) (*iscsi.AddTargetPortalResponse, error) {
	_, err := r.ask(ctx, "AddTargetPortal", in.TargetPortal, nil)
	return &iscsi.AddTargetPortalResponse{}, err
}

func (r remoteISCSI) ConnectTarget(ctx context.Context, in *iscsi.ConnectTargetRequest) (*iscsi.ConnectTargetResponse, error) {
	_, err := r.ask(ctx, "ConnectTarget", in.TargetPortal, fields{
		"iqn": in.IQN, "auth_type": uint32(in.AuthType), "chap_username": in.ChapUsername, "chap_secret": in.ChapSecret,
	})
	return &iscsi.ConnectTargetResponse{}, err
}

func (r remoteISCSI) DisconnectTarget(ctx context.Context, in *iscsi.DisconnectTargetRequest) (*iscsi.DisconnectTargetResponse, error) {
	_, err := r.ask(ctx, "DisconnectTarget", in.TargetPortal, fields{"iqn": in.IQN})
	return &iscsi.DisconnectTargetResponse{}, err
}

func (r remoteISCSI) DiscoverTargetPortal(ctx context.Context, in *iscsi.DiscoverTargetPortalRequest) (*iscsi.DiscoverTargetPortalResponse, error) {
	out, err := r.ask(ctx, "DiscoverTargetPortal", in.TargetPortal, nil)
	if err != nil {
		return nil, err
	}
	return &iscsi.DiscoverTargetPortalResponse{IQNs: out.texts("iqns")}, nil
}

func (r remoteISCSI) GetTargetDisks(ctx context.Context, in *iscsi.GetTargetDisksRequest) (*iscsi.GetTargetDisksResponse, error) {
	out, err := r.ask(ctx, "GetTargetDisks", in.TargetPortal, fields{"iqn": in.IQN})
	if err != nil {
		return nil, err
	}
	return &iscsi.GetTargetDisksResponse{DiskIDs: out.texts("diskIDs")}, nil
}

func (r remoteISCSI) ListTargetPortals(ctx context.Context, _ *iscsi.ListTargetPortalsRequest) (*iscsi.ListTargetPortalsResponse, error) {
	out, err := r.ask(ctx, "ListTargetPortals", nil, nil)
	if err != nil {
		return nil, err
	}
	list := out.message.Get(out.message.Descriptor().Fields().ByName("target_portals")).List()
	answer := &iscsi.ListTargetPortalsResponse{}
	for i := range list.Len() {
		portal := list.Get(i).Message()
		names := portal.Descriptor().Fields()
		answer.TargetPortals = append(answer.TargetPortals, &iscsi.TargetPortal{
			TargetAddress: portal.Get(names.ByName("target_address")).String(),
			TargetPort:    uint32(portal.Get(names.ByName("target_port")).Uint()),
		})
	}
	return answer, nil
}

func (r remoteISCSI) RemoveTargetPortal(ctx context.Context, in *iscsi.RemoveTargetPortalRequest) (*iscsi.RemoveTargetPortalResponse, error) {
	_, err := r.ask(ctx, "RemoveTargetPortal", in.TargetPortal, nil)
	return &iscsi.RemoveTargetPortalResponse{}, err
}

func (r remoteISCSI) SetMutualChapSecret(ctx context.Context, in *iscsi.SetMutualChapSecretRequest) (*iscsi.SetMutualChapSecretResponse, error) {
	_, err := r.ask(ctx, "SetMutualChapSecret", nil, fields{"MutualChapSecret": in.MutualChapSecret})
	return &iscsi.SetMutualChapSecretResponse{}, err
}

// TestSecrets_ISCSI plants secrets in every request that has one, fails every call to the
// machine in turn, and reads everything that the server logs at its most talkative, and every
// error.
func TestSecrets_ISCSI(t *testing.T) {
	const planted = "xyzzy-plugh-42"
	log := captureLog(t)
	var answers strings.Builder
	for _, version := range iscsiVersions {
		node := newNode(t)
		dir := run(t, node, "iscsi/"+version.name)
		api := remoteISCSI{dialRemote(t, version.newClient, dir, "iscsi", version.name)}
		portal := &iscsi.TargetPortal{TargetAddress: "10.0.0.10"}
		if _, err := api.AddTargetPortal(t.Context(), &iscsi.AddTargetPortalRequest{TargetPortal: portal}); err != nil {
			t.Fatal(err)
		}
		ask := func() {
			for _, secret := range []string{planted, planted + planted} { // the latter is refused
				for _, auth := range []iscsi.AuthenticationType{iscsi.NONE, iscsi.ONE_WAY_CHAP, iscsi.MUTUAL_CHAP, 7} {
					_, err := api.ConnectTarget(t.Context(), &iscsi.ConnectTargetRequest{
						TargetPortal: portal, IQN: guardedTarget, AuthType: auth, ChapUsername: "winsim", ChapSecret: secret,
					})
					fmt.Fprintf(&answers, "%+v\n", err)
				}
				if api.has("SetMutualChapSecret") {
					_, err := api.SetMutualChapSecret(t.Context(), &iscsi.SetMutualChapSecretRequest{MutualChapSecret: secret})
					fmt.Fprintf(&answers, "%+v\n", err)
				}
			}
		}
		ask()
		for _, code := range []uint32{5, 0xEFFF0009, 0xEFFF003E} {
			fault, err := node.Inject(winsim.Fault{Error: code})
			must(t, err)
			ask()
			fault.Remove()
		}
	}
	text := log() + answers.String()
	if !strings.Contains(text, "ConnectTarget") || !strings.Contains(text, "SetMutualChapSecret") || !strings.Contains(text, "***") || !strings.Contains(text, `method="Login"`) {
		t.Errorf("the log is not what it should be:\n%s", text)
	}
	for _, form := range []string{planted, fmt.Sprintf("%x", planted), base64.StdEncoding.EncodeToString([]byte(planted))} {
		if at := strings.Index(text, form); at >= 0 {
			t.Errorf("a secret is given away: %s", text[max(0, at-200):at+len(form)])
		}
	}
}

// captureLog collects everything that is logged until the function it returns is called.
func captureLog(t *testing.T) func() string {
	t.Helper()
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"v": "100", "logtostderr": "false", "stderrthreshold": "FATAL"} {
		must(t, flags.Set(name, value))
	}
	var log syncBuffer
	klog.SetOutput(&log)
	return func() string {
		klog.Flush()
		return log.String()
	}
}

// syncBuffer is a buffer that goroutines may write to at the same time.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
