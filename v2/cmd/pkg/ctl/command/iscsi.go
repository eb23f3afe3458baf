package command

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	iscsiv1alpha2 "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

const (
	examplePortal = "10.0.0.10"
	exampleTarget = "iqn.2025-01.com.example:open"
)

func (a *app) iscsi() *cobra.Command {
	return a.group(page{
		use:     "iscsi",
		short:   "Manage iSCSI portals and targets",
		long:    "PORTAL is the address of an iSCSI server, with a port after a colon if it is not 3260. IQN is the name of a target.",
		example: "  csi-proxyctl iscsi portal add " + examplePortal + "\n  csi-proxyctl iscsi connect " + examplePortal + " " + exampleTarget,
	},
		a.group(page{
			use:     "portal",
			short:   "Manage the portals of the initiator",
			long:    "Manage the portals of the node's initiator: the servers that it asks for targets.",
			example: "  csi-proxyctl iscsi portal list",
		},
			a.simple(simple{page: page{
				use:     "add PORTAL",
				short:   "Add a portal to the initiator",
				long:    "Does nothing if the initiator has it.",
				example: "  csi-proxyctl iscsi portal add " + examplePortal + ":3260",
			}, method: "iscsi/AddTargetPortal", object: "portal {1}", done: "added"}),
			a.leaf(page{
				use:     "list",
				short:   "List the portals of the initiator",
				long:    "List the portals of the initiator (ListTargetPortals).",
				example: "  csi-proxyctl iscsi portal list -o json",
			}, 0, listPortals),
			a.simple(simple{page: page{
				use:     "remove PORTAL",
				short:   "Remove a portal from the initiator",
				long:    "Keeps its sessions. Does nothing if the initiator does not have it.",
				example: "  csi-proxyctl iscsi portal remove " + examplePortal,
			}, method: "iscsi/RemoveTargetPortal", object: "portal {1}", done: "removed"}),
			a.simple(simple{page: page{
				use:     "discover PORTAL",
				short:   "List the targets of a portal",
				long:    "Add the portal first.",
				example: "  csi-proxyctl iscsi portal discover " + examplePortal,
			}, method: "iscsi/DiscoverTargetPortal", header: "TARGET", empty: "the portal has no targets for this node"}),
		),
		a.leaf(page{
			use:   "sessions",
			short: "List the sessions of the initiator",
			long: `List the sessions of the initiator with their disks, and the logins that Windows repeats at
every start (PERSISTENT). One without a session is not connected.

The published API has no such call, so this needs a csi-proxy that has its own.`,
			example: "  csi-proxyctl iscsi sessions",
		}, 0, listSessions),
		a.connect(),
		a.simple(simple{page: page{
			use:     "disconnect PORTAL IQN",
			short:   "Log out of a target",
			long:    "Log out of a target and detach its disks (DisconnectTarget). Does nothing if there is no session.",
			example: "  csi-proxyctl iscsi disconnect " + examplePortal + " " + exampleTarget,
		}, method: "iscsi/DisconnectTarget", object: "{2}", done: "disconnected"}),
		a.simple(simple{page: page{
			use:     "disks PORTAL IQN",
			short:   "List the disk numbers of a target",
			long:    "List the disk numbers of a target (GetTargetDisks), for 'csi-proxyctl disk'.",
			example: "  csi-proxyctl iscsi disks " + examplePortal + " " + exampleTarget,
		}, method: "iscsi/GetTargetDisks", header: "DISK", empty: "the target has no disks for this node"}),
		a.mutualCHAP(),
	)
}

// defaultPort is the port that IANA registered for iSCSI.
const defaultPort = 3260

func parsePortal(text string) (*iscsiv1alpha2.TargetPortal, error) {
	if !strings.Contains(text, ":") || net.ParseIP(text) != nil { // no port, or IPv6 without one
		return &iscsiv1alpha2.TargetPortal{TargetAddress: text, TargetPort: defaultPort}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return nil, usagef("invalid portal %q; use ADDRESS or ADDRESS:PORT, with IPv6 in brackets: [fd00::1]:3260", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return nil, usagef("portal %q: invalid port %q", text, port)
	}
	return &iscsiv1alpha2.TargetPortal{TargetAddress: host, TargetPort: uint32(number)}, nil
}

func listPortals(ctx context.Context, s *session, _ []string) error {
	var response iscsiv1alpha2.ListTargetPortalsResponse
	if err := s.client.Do(ctx, "iscsi", "ListTargetPortals", &iscsiv1alpha2.ListTargetPortalsRequest{}, &response); err != nil {
		return err
	}
	list := []output.Object{}
	rows := output.Rows{Header: []string{"ADDRESS", "PORT"}, Empty: "no portals; add one with 'csi-proxyctl iscsi portal add PORTAL'"}
	for _, p := range response.GetTargetPortals() {
		list = append(list, output.Message(p))
		rows.Add(output.Text(p.GetTargetAddress()), output.Text(strconv.FormatUint(uint64(p.GetTargetPort()), 10)))
	}
	return s.list(list, &rows)
}

func listSessions(ctx context.Context, s *session, _ []string) error {
	node, err := s.source.Sessions(ctx)
	if err != nil {
		return err
	}
	rows := output.Rows{Header: []string{"TARGET", "STATE", "DISKS", "PERSISTENT", "PORTALS"}, Empty: "no sessions"}
	for _, session := range node.GetSessions() {
		state := output.Cell{Text: "connected", Style: output.Good}
		if session.GetConnections() == 0 {
			state = output.Cell{Text: "not-connected", Style: output.Bad}
		}
		disks := strings.ReplaceAll(inventory.Numbers(session.GetDisks()), " ", "")
		rows.Add(output.Text(session.GetTarget()), state, output.Text(disks), yesNo(&session.Persistent), output.Text(strings.Join(session.GetPortals(), ",")))
	}
	if err := s.list(inventory.Objects(node, node.GetSessions()), &rows); err != nil || s.Format.ForScripts() {
		return err
	}
	s.warnOf(node.About(problem.Session), problem.DeadSession, problem.NoAnswer)
	return nil
}

var authentications = map[string]iscsiv1alpha2.AuthenticationType{
	"none":   iscsiv1alpha2.AuthenticationType_NONE,
	"chap":   iscsiv1alpha2.AuthenticationType_ONE_WAY_CHAP,
	"mutual": iscsiv1alpha2.AuthenticationType_MUTUAL_CHAP,
}

func (a *app) connect() *cobra.Command {
	var auth, user string
	secret := secretFlags{word: "secret"}
	c := a.interactive(page{
		use:   "connect PORTAL IQN",
		short: "Log in to a target",
		long: `Log in to a target and attach its disks (ConnectTarget). Prompts for the CHAP secret, or
reads it from a file or from standard input. The secret is never an argument, because
process lists show arguments.`,
		example: "  csi-proxyctl iscsi connect " + examplePortal + " " + exampleTarget + `
  csi-proxyctl iscsi connect ` + examplePortal + ` iqn.2025-01.com.example:guarded --auth chap --user winsim --secret-file secret.txt`,
	}, 2, func(ctx context.Context, s *session, args []string) error {
		at, err := parsePortal(args[0])
		if err != nil {
			return err
		}
		kind, ok := authentications[auth]
		if !ok {
			return usagef("--auth must be none, chap or mutual, got %q", auth)
		}
		request := &iscsiv1alpha2.ConnectTargetRequest{TargetPortal: at, Iqn: args[1], AuthType: kind, ChapUsername: user}
		switch {
		case kind == iscsiv1alpha2.AuthenticationType_NONE && (user != "" || secret.given()):
			return usagef("--auth none takes no user and no secret; use --auth chap or --auth mutual")
		case kind == iscsiv1alpha2.AuthenticationType_NONE:
		case user == "":
			return usagef("--auth %s needs --user", auth)
		default:
			if request.ChapSecret, err = secret.read(a.env, "CHAP secret of "+user+": "); err != nil {
				return err
			}
		}
		return a.bounded(ctx, func(ctx context.Context) error {
			return s.change(ctx, "iscsi", "ConnectTarget", request, &iscsiv1alpha2.ConnectTargetResponse{}, args[1], "connected")
		})
	})
	c.Flags().StringVar(&auth, "auth", "none", "authentication: none, chap, mutual")
	c.Flags().StringVar(&user, "user", "", "CHAP user")
	secret.register(c.Flags())
	_ = c.RegisterFlagCompletionFunc("auth", cobra.FixedCompletions([]cobra.Completion{"none", "chap", "mutual"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) mutualCHAP() *cobra.Command {
	secret := secretFlags{word: "secret"}
	c := a.interactive(page{
		use:   "mutual-chap",
		short: "Set the secret with which targets authenticate to this node",
		long: `Set the secret with which targets authenticate to this node (SetMutualChapSecret). Prompts
for the secret, or reads it from a file or from standard input.`,
		example: "  csi-proxyctl iscsi mutual-chap --secret-file secret.txt",
	}, 0, func(ctx context.Context, s *session, _ []string) error {
		text, err := secret.read(a.env, "Mutual CHAP secret: ")
		if err != nil {
			return err
		}
		request := &iscsiv1alpha2.SetMutualChapSecretRequest{MutualChapSecret: text}
		return a.bounded(ctx, func(ctx context.Context) error {
			return s.change(ctx, "iscsi", "SetMutualChapSecret", request, &iscsiv1alpha2.SetMutualChapSecretResponse{}, "mutual CHAP secret", "set")
		})
	})
	secret.register(c.Flags())
	return c
}
