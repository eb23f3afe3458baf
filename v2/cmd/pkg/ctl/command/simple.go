package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

// simple is a command that makes one call. Its arguments are the first fields of the request.
type simple struct {
	page          // the long text is what follows the short one and the method, unless it names the method itself
	method string // with its group, such as disk/GetDiskStats

	// A change says what it did to what. {1} is the first argument.
	object, done string
	// Of the answer to a question people get the first field, or this text. Scripts get request and response.
	text func(response proto.Message) string
	// A list has a header and a note for an empty one.
	header, empty string
}

func (a *app) simple(c simple) *cobra.Command {
	group, method, _ := strings.Cut(c.method, "/")
	if named := "(" + method + ")"; !strings.Contains(c.long, named) {
		c.long = strings.TrimSpace(c.short + " " + named + ". " + c.long)
	}
	arguments := strings.Fields(c.use)[1:]
	return a.leaf(c.page, len(arguments), func(ctx context.Context, s *session, args []string) error {
		request, response := call.Messages(group, method)
		values, words, err := parseAll(arguments, args)
		if err != nil {
			return err
		}
		in := request.ProtoReflect()
		for i, value := range values {
			in.Set(in.Descriptor().Fields().Get(i), value)
		}
		if err := s.client.Do(ctx, group, method, request, response); err != nil {
			return err
		}
		if c.done != "" {
			return s.done(words.Replace(c.object), words.Replace(c.done))
		}
		answers := output.Message(response)
		if c.header != "" {
			rows := output.Rows{Header: []string{c.header}, Empty: c.empty}
			for _, word := range answers[0].Value.([]any) {
				rows.Add(output.Text(fmt.Sprint(word)))
			}
			return s.list(answers[0].Value, &rows)
		}
		return s.Value(slices.Concat(output.Message(request), answers), func() string {
			if c.text != nil {
				return c.text(response) + "\n"
			}
			return fmt.Sprintln(answers[0].Value)
		})
	})
}

// parseAll reads arguments, and returns what turns {1} into the first one as people see it.
func parseAll(names, typed []string) (values []protoreflect.Value, words *strings.Replacer, err error) {
	shown := []string{}
	for i, name := range names {
		value, text, err := parse(name, typed[i])
		if err != nil {
			return nil, nil, err
		}
		values, shown = append(values, value), append(shown, fmt.Sprintf("{%d}", i+1), text)
	}
	return values, strings.NewReplacer(shown...), nil
}

// parse reads an argument by its name in the usage, and returns it as people see it.
func parse(name, typed string) (value protoreflect.Value, shown string, err error) {
	switch name {
	case "DISK":
		disk, err := parseDisk(typed)
		return protoreflect.ValueOf(disk), fmt.Sprint(disk), err
	case "VOLUME":
		id := volumeID(typed)
		return protoreflect.ValueOf(id), inventory.ShortID(id), nil
	case "PORTAL":
		at, err := parsePortal(typed)
		return protoreflect.ValueOf(at.ProtoReflect()), typed, err
	case "SIZE":
		size, err := output.ParseSize(typed)
		if err != nil {
			return value, "", usageError{err}
		}
		return protoreflect.ValueOf(size), output.Size(size), nil
	default:
		return protoreflect.ValueOf(typed), typed, nil
	}
}
