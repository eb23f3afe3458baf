package command

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

const (
	examplePortal = "10.0.0.10"
	exampleTarget = "iqn.2025-01.com.example:open"
)

func (a *app) iscsi() *cobra.Command {
	return a.group(page{
		use:     "iscsi",
		short:   "iSCSI: portals, targets and their disks",
		long:    "A portal is the address of a server, with port 3260 unless another follows after a colon. A target goes by its iqn.",
		example: "  csi-proxyctl iscsi portal add " + examplePortal + "\n  csi-proxyctl iscsi connect " + examplePortal + " " + exampleTarget,
	},
		a.group(page{
			use:     "portal",
			short:   "Portals: the servers that offer targets",
			long:    "Portals that the initiator of the node knows. It asks them for targets.",
			example: "  csi-proxyctl iscsi portal list",
		},
			a.onPortal(page{
				use:     "add PORTAL",
				short:   "Make a portal known to the initiator",
				long:    "Make a portal known to the initiator (AddTargetPortal). Repeating it changes nothing.",
				example: "  csi-proxyctl iscsi portal add " + examplePortal + ":3260",
			}, addPortal),
			a.leaf(page{
				use:     "list",
				short:   "List the portals that the initiator knows",
				long:    "List the portals that the initiator knows (ListTargetPortals).",
				example: "  csi-proxyctl iscsi portal list -o json",
			}, 0, listPortals),
			a.onPortal(page{
				use:     "remove PORTAL",
				short:   "Make the initiator forget a portal",
				long:    "Make the initiator forget a portal (RemoveTargetPortal). Sessions stay. Repeating it changes nothing.",
				example: "  csi-proxyctl iscsi portal remove " + examplePortal,
			}, removePortal),
			a.onPortal(page{
				use:     "discover PORTAL",
				short:   "List the targets that a portal offers",
				long:    "List the targets that a portal offers (DiscoverTargetPortal). It must have been added.",
				example: "  csi-proxyctl iscsi portal discover " + examplePortal,
			}, discover),
		),
		a.connect(),
		a.onTarget(page{
			use:     "disconnect PORTAL IQN",
			short:   "Log out of a target",
			long:    "Log out of a target (DisconnectTarget). Its disks vanish. Repeating it changes nothing.",
			example: "  csi-proxyctl iscsi disconnect " + examplePortal + " " + exampleTarget,
		}, disconnect),
		a.onTarget(page{
			use:     "disks PORTAL IQN",
			short:   "List the numbers of a target's disks",
			long:    "List the numbers of a target's disks (GetTargetDisks), for 'csi-proxyctl disk'.",
			example: "  csi-proxyctl iscsi disks " + examplePortal + " " + exampleTarget,
		}, targetDisks),
		a.mutualCHAP(),
	)
}

// defaultPort is the one that IANA has registered for iSCSI.
const defaultPort = 3260

func parsePortal(text string) (*iscsiv1alpha2.TargetPortal, error) {
	if !strings.Contains(text, ":") || net.ParseIP(text) != nil { // no port, or IPv6 without one
		return &iscsiv1alpha2.TargetPortal{TargetAddress: text, TargetPort: defaultPort}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return nil, usagef("portal %q is no address with a port: IPv6 goes in brackets, as in [fd00::1]:3260", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return nil, usagef("portal %q: %q is no port", text, port)
	}
	return &iscsiv1alpha2.TargetPortal{TargetAddress: host, TargetPort: uint32(number)}, nil
}

type portal = iscsiv1alpha2.TargetPortal

func (a *app) onPortal(p page, run func(ctx context.Context, s *session, at *portal, typed string) error) *cobra.Command {
	return a.leaf(p, 1, func(ctx context.Context, s *session, args []string) error {
		at, err := parsePortal(args[0])
		if err != nil {
			return err
		}
		return run(ctx, s, at, args[0])
	})
}

func (a *app) onTarget(p page, run func(ctx context.Context, s *session, at *portal, iqn string) error) *cobra.Command {
	return a.leaf(p, 2, func(ctx context.Context, s *session, args []string) error {
		at, err := parsePortal(args[0])
		if err != nil {
			return err
		}
		return run(ctx, s, at, args[1])
	})
}

func addPortal(ctx context.Context, s *session, at *portal, typed string) error {
	if err := s.client.Do(ctx, "iscsi", "AddTargetPortal", &iscsiv1alpha2.AddTargetPortalRequest{TargetPortal: at}, &iscsiv1alpha2.AddTargetPortalResponse{}); err != nil {
		return err
	}
	return s.done("portal "+typed, "added")
}

func removePortal(ctx context.Context, s *session, at *portal, typed string) error {
	if err := s.client.Do(ctx, "iscsi", "RemoveTargetPortal", &iscsiv1alpha2.RemoveTargetPortalRequest{TargetPortal: at}, &iscsiv1alpha2.RemoveTargetPortalResponse{}); err != nil {
		return err
	}
	return s.done("portal "+typed, "removed")
}

func listPortals(ctx context.Context, s *session, _ []string) error {
	var response iscsiv1alpha2.ListTargetPortalsResponse
	if err := s.client.Do(ctx, "iscsi", "ListTargetPortals", &iscsiv1alpha2.ListTargetPortalsRequest{}, &response); err != nil {
		return err
	}
	type row struct {
		Address string `json:"address"`
		Port    uint32 `json:"port"`
	}
	list := []row{}
	rows := output.Rows{Header: []string{"ADDRESS", "PORT"}}
	for _, p := range response.GetTargetPortals() {
		list = append(list, row{p.GetTargetAddress(), p.GetTargetPort()})
		rows.Add(output.Text(p.GetTargetAddress()), output.Text(strconv.FormatUint(uint64(p.GetTargetPort()), 10)))
	}
	return s.Value(list, func() string { return s.Table(&rows) })
}

// words prints a list of words: a line each, or an array.
func (s *session) words(header string, words []string) error {
	rows := output.Rows{Header: []string{header}}
	for _, word := range words {
		rows.Add(output.Text(word))
	}
	if words == nil {
		words = []string{}
	}
	return s.Value(words, func() string { return s.Table(&rows) })
}

func discover(ctx context.Context, s *session, at *portal, _ string) error {
	var response iscsiv1alpha2.DiscoverTargetPortalResponse
	if err := s.client.Do(ctx, "iscsi", "DiscoverTargetPortal", &iscsiv1alpha2.DiscoverTargetPortalRequest{TargetPortal: at}, &response); err != nil {
		return err
	}
	return s.words("TARGET", response.GetIqns())
}

func disconnect(ctx context.Context, s *session, at *portal, iqn string) error {
	request := &iscsiv1alpha2.DisconnectTargetRequest{TargetPortal: at, Iqn: iqn}
	if err := s.client.Do(ctx, "iscsi", "DisconnectTarget", request, &iscsiv1alpha2.DisconnectTargetResponse{}); err != nil {
		return err
	}
	return s.done(iqn, "disconnected")
}

func targetDisks(ctx context.Context, s *session, at *portal, iqn string) error {
	var response iscsiv1alpha2.GetTargetDisksResponse
	if err := s.client.Do(ctx, "iscsi", "GetTargetDisks", &iscsiv1alpha2.GetTargetDisksRequest{TargetPortal: at, Iqn: iqn}, &response); err != nil {
		return err
	}
	return s.words("DISK", response.GetDiskIDs())
}

// authentications are the values of --auth.
var authentications = map[string]iscsiv1alpha2.AuthenticationType{
	"none":   iscsiv1alpha2.AuthenticationType_NONE,
	"chap":   iscsiv1alpha2.AuthenticationType_ONE_WAY_CHAP,
	"mutual": iscsiv1alpha2.AuthenticationType_MUTUAL_CHAP,
}

func (a *app) connect() *cobra.Command {
	var auth, user string
	secret := secretFlags{word: "secret"}
	c := a.asking(page{
		use:   "connect PORTAL IQN",
		short: "Log in to a target",
		long: `Log in to a target (ConnectTarget). Its disks appear. The CHAP secret is asked for, or comes
from a file or from standard input; it is never an argument, which process lists show.`,
		example: "  csi-proxyctl iscsi connect " + examplePortal + " " + exampleTarget + `
  csi-proxyctl iscsi connect ` + examplePortal + ` iqn.2025-01.com.example:guarded --auth chap --user winsim --secret-file secret.txt`,
	}, 2, func(ctx context.Context, s *session, args []string) error {
		at, err := parsePortal(args[0])
		if err != nil {
			return err
		}
		kind, ok := authentications[auth]
		if !ok {
			return usagef("--auth %q: it is none, chap or mutual", auth)
		}
		request := &iscsiv1alpha2.ConnectTargetRequest{TargetPortal: at, Iqn: args[1], AuthType: kind, ChapUsername: user}
		switch {
		case kind == iscsiv1alpha2.AuthenticationType_NONE && (user != "" || secret.given()):
			return usagef("--auth none takes neither user nor secret: say --auth chap or --auth mutual")
		case kind == iscsiv1alpha2.AuthenticationType_NONE:
		case user == "":
			return usagef("--auth %s needs --user", auth)
		default:
			if request.ChapSecret, err = secret.read(a.env, "CHAP secret of "+user+": "); err != nil {
				return err
			}
		}
		return a.bounded(ctx, func(ctx context.Context) error {
			if err := s.client.Do(ctx, "iscsi", "ConnectTarget", request, &iscsiv1alpha2.ConnectTargetResponse{}); err != nil {
				return err
			}
			return s.done(args[1], "connected")
		})
	})
	c.Flags().StringVar(&auth, "auth", "none", "how to log in: none, chap, mutual")
	c.Flags().StringVar(&user, "user", "", "CHAP user")
	secret.register(c.Flags())
	_ = c.RegisterFlagCompletionFunc("auth", cobra.FixedCompletions([]cobra.Completion{"none", "chap", "mutual"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) mutualCHAP() *cobra.Command {
	secret := secretFlags{word: "secret"}
	c := a.asking(page{
		use:   "mutual-chap",
		short: "Set the secret with which targets prove themselves to this node",
		long: `Set the secret with which targets prove themselves to this node (SetMutualChapSecret). It is
asked for, or comes from a file or from standard input.`,
		example: "  csi-proxyctl iscsi mutual-chap --secret-file secret.txt",
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		text, err := secret.read(a.env, "Mutual CHAP secret: ")
		if err != nil {
			return err
		}
		request := &iscsiv1alpha2.SetMutualChapSecretRequest{MutualChapSecret: text}
		return a.bounded(ctx, func(ctx context.Context) error {
			if err := s.client.Do(ctx, "iscsi", "SetMutualChapSecret", request, &iscsiv1alpha2.SetMutualChapSecretResponse{}); err != nil {
				return err
			}
			return s.done("mutual CHAP secret", "set")
		})
	})
	secret.register(c.Flags())
	return c
}
