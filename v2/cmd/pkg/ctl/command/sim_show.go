package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

// simNode is what 'sim show' shows of an emulated node, in the words of its model.
type simNode struct {
	Disks []simDisk `json:"disks"`
	ISCSI struct {
		Targets []struct {
			LUNs []simDisk `json:"luns"`
		} `json:"targets"`
	} `json:"iscsi"`
	SMBServers []struct {
		Name    string   `json:"name"`
		Aliases []string `json:"aliases"`
		Down    bool     `json:"down"`
		Shares  []struct {
			Name string `json:"name"`
		} `json:"shares"`
		Accounts []struct {
			User string `json:"user"`
		} `json:"accounts"`
	} `json:"smbServers"`
	SMBMappings []struct {
		Remote string `json:"remote"`
		Stale  bool   `json:"stale"`
		Idle   bool   `json:"idle"`
	} `json:"smbMappings"`
	Fingerprints map[uint32]string `json:"fingerprints"`
}

type simDisk struct {
	Number  uint32  `json:"number"`
	Size    simSize `json:"size"`
	Visible simSize `json:"visible"`
	Serial  string  `json:"serial"`
	SCSI    *struct {
		LUN uint32 `json:"lun"`
	} `json:"scsi"`
	Layout     string `json:"layout"`
	Presence   string `json:"presence"`
	System     bool   `json:"system"`
	Offline    bool   `json:"offline"`
	ReadOnly   bool   `json:"readOnly"`
	Dying      bool   `json:"dying"`
	Hanging    bool   `json:"hanging"`
	Partitions []struct {
		Type   string  `json:"type"`
		Size   simSize `json:"size"`
		Volume struct {
			ID         string `json:"id"`
			FileSystem string `json:"fileSystem"`
			Label      string `json:"label"`
			Hidden     bool   `json:"hidden"`
		} `json:"volume"`
	} `json:"partitions"`
}

// simSize is a size in the words of a model, such as 10GiB.
type simSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *simSize) UnmarshalText(text []byte) error {
	size, err := output.ParseSize(string(text))
	*s = simSize(size)
	return err
}

// attached are the attached disks by number, and detached the numbers of others that can come back.
func (n simNode) attached() (disks []simDisk, detached []uint32) {
	all := slices.Clone(n.Disks)
	for _, t := range n.ISCSI.Targets {
		all = append(all, t.LUNs...)
	}
	detached = []uint32{}
	for _, d := range all {
		switch d.Presence {
		case "detached":
			detached = append(detached, d.Number)
		case "away":
		default:
			disks = append(disks, d)
		}
	}
	slices.SortFunc(disks, func(a, b simDisk) int { return cmp.Compare(a.Number, b.Number) })
	return disks, detached
}

func simShow(ctx context.Context, s *session, _ []string) error {
	described, err := s.client.Emulated(ctx)
	if err != nil {
		return err
	}
	var node simNode
	if err := json.Unmarshal([]byte(described), &node); err != nil {
		return fmt.Errorf("read what csi-proxy-sim describes: %w; use the csi-proxyctl of its version", err)
	}
	attached, detached := node.attached()
	disks := output.Rows{Header: []string{"DISK", "SIZE", "STATE", "LAYOUT", "LUN", "SERIAL", "FILE SYSTEMS"}}
	diskMembers := []output.Object{}
	for _, d := range attached {
		var lun any
		shownLUN := ""
		if d.SCSI != nil {
			lun, shownLUN = d.SCSI.LUN, fmt.Sprint(d.SCSI.LUN)
		}
		partitions, fileSystems := []output.Object{}, []string{}
		for i, p := range d.Partitions {
			id, fileSystem := p.Volume.ID, cmp.Or(p.Volume.FileSystem, "raw")
			if p.Volume.Hidden {
				id = ""
			}
			if fileSystem != "raw" {
				fileSystems = append(fileSystems, fileSystem)
			}
			partitions = append(partitions, output.Object{
				{Name: "number", Value: i + 1},
				{Name: "type", Value: p.Type},
				{Name: "sizeBytes", Value: int64(p.Size)},
				{Name: "volumeID", Value: id},
				{Name: "fileSystem", Value: fileSystem},
				{Name: "label", Value: p.Volume.Label},
			})
		}
		diskMembers = append(diskMembers, output.Object{
			{Name: "number", Value: d.Number},
			{Name: "sizeBytes", Value: int64(d.Size)},
			{Name: "visibleSizeBytes", Value: int64(d.Visible)},
			{Name: "layout", Value: d.Layout},
			{Name: "serial", Value: d.Serial},
			{Name: "lun", Value: lun},
			{Name: "system", Value: d.System},
			{Name: "offline", Value: d.Offline},
			{Name: "readOnly", Value: d.ReadOnly},
			{Name: "failing", Value: d.Dying},
			{Name: "hanging", Value: d.Hanging},
			{Name: "partitions", Value: partitions},
			{Name: "fingerprint", Value: node.Fingerprints[d.Number]},
		})
		disks.Add(output.Text(fmt.Sprint(d.Number)), output.Text(output.Size(int64(d.Size))), output.Text(d.state()),
			output.Text(d.Layout), output.Text(shownLUN), output.Text(d.Serial), output.Text(strings.Join(fileSystems, ",")))
	}
	servers := output.Rows{Header: []string{"SERVER", "STATE", "SHARES", "USERS"}}
	serverMembers, down := []output.Object{}, map[string]bool{}
	for _, v := range node.SMBServers {
		shares, users, state := []string{}, []string{}, "up"
		for _, share := range v.Shares {
			shares = append(shares, share.Name)
		}
		for _, account := range v.Accounts {
			users = append(users, account.User)
		}
		if v.Down {
			state = "down"
		}
		for _, name := range append([]string{v.Name}, v.Aliases...) {
			down[strings.ToLower(name)] = v.Down
		}
		serverMembers = append(serverMembers, output.Object{
			{Name: "name", Value: v.Name}, {Name: "down", Value: v.Down}, {Name: "shares", Value: shares}, {Name: "users", Value: users},
		})
		servers.Add(output.Text(v.Name), output.Text(state), output.Text(strings.Join(shares, ",")), output.Text(strings.Join(users, ",")))
	}
	mappings := output.Rows{Header: []string{"MAPPING", "STATE"}}
	mappingMembers := []output.Object{}
	for _, m := range node.SMBMappings {
		server, _, _ := strings.Cut(strings.TrimPrefix(m.Remote, `\\`), `\`)
		connected, state := !m.Stale && !m.Idle && !down[strings.ToLower(server)], "connected"
		if !connected {
			state = "disconnected"
		}
		mappingMembers = append(mappingMembers, output.Object{{Name: "remotePath", Value: m.Remote}, {Name: "connected", Value: connected}})
		mappings.Add(output.Text(m.Remote), output.Text(state))
	}
	return s.Value(output.Object{
		{Name: "disks", Value: diskMembers},
		{Name: "detachedDisks", Value: detached},
		{Name: "servers", Value: serverMembers},
		{Name: "mappings", Value: mappingMembers},
	}, func() string {
		var text strings.Builder
		text.WriteString(s.Table(&disks))
		if len(detached) > 0 {
			fmt.Fprintf(&text, "Detached: %s\n", strings.Trim(fmt.Sprint(detached), "[]"))
		}
		for _, rows := range []*output.Rows{&servers, &mappings} {
			if len(rows.Cells) > 0 {
				text.WriteString("\n" + s.Table(rows))
			}
		}
		return text.String()
	})
}

func (d simDisk) state() string {
	words := []string{"online"}
	if d.Offline {
		words[0] = "offline"
	}
	for _, word := range []struct {
		text string
		set  bool
	}{
		{"read-only", d.ReadOnly},
		{"failing", d.Dying},
		{"hanging", d.Hanging},
		{"system", d.System},
		{"Windows shows " + strings.ReplaceAll(output.Size(int64(d.Visible)), " ", ""), d.Size != d.Visible},
	} {
		if word.set {
			words = append(words, word.text)
		}
	}
	return strings.Join(words, ",")
}
