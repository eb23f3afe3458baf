package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/bundle"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/doctor"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/installation"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/webpage"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

type bundleOptions struct {
	file, logFile, metrics, serviceName string
}

func (a *app) supportBundle() *cobra.Command {
	var o bundleOptions
	c := a.leaf(page{
		use:   "support-bundle",
		short: "Write a zip file with everything that support asks for",
		long: `Write one zip file with versions, the daemon's command line, what doctor finds, the node's
storage (text, JSON and a web page), the end of the log file, the trace of the last crash and
the metrics. Of the log and the trace it has the last 4 MiB. Print what is in it and what is
not. A part that fails does not stop the others, and the file is written even if the daemon
does not answer.

What looks like a password, key or token is removed. Names of machines, servers, shares, users,
pods and volumes stay. Look at the file before you send it.

The log file and the address of the metrics come from the service's command line. If the daemon
runs in a container, pass --log-file and --metrics-address.`,
		example: `  csi-proxyctl support-bundle
  csi-proxyctl support-bundle --file ticket-4711.zip
  csi-proxyctl support-bundle --log-file 'C:\var\log\csi-proxy\csi-proxy.log' --metrics-address 127.0.0.1:9761`,
	}, 0, func(ctx context.Context, s *session, _ []string) error { return a.writeBundle(ctx, s, o) })
	c.Flags().StringVarP(&o.file, "file", "f", "", "`file` to write, or - for standard output (default: csi-proxy-support-HOST-TIME.zip in this directory)")
	c.Flags().StringVar(&o.logFile, "log-file", "", "log file of the daemon (default: the one in the service's command line)")
	c.Flags().StringVar(&o.metrics, "metrics-address", "", "address of the daemon's metrics, such as 127.0.0.1:9761 (default: the one in the service's command line)")
	c.Flags().StringVar(&o.serviceName, "service-name", installation.DefaultName, "name of the daemon's service")
	return c
}

func (a *app) writeBundle(ctx context.Context, s *session, o bundleOptions) error {
	now := a.env.Now()
	if o.file == "" {
		o.file = "csi-proxy-support-"
		if a.env.Host != "" {
			o.file += a.env.Host + "-"
		}
		o.file += now.UTC().Format("20060102-150405") + ".zip"
	}
	if o.file == standardOutput && a.env.Terminal {
		return errors.New("standard output is a terminal, and a bundle is not text; redirect it, or pass another --file")
	}
	var file *os.File
	saved := o.file == standardOutput
	if !saved { // before the work, which takes time; it replaces nothing, and follows no link
		var err error
		file, err = os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("write %s: it exists; pass another name with --file", o.file)
		}
		if err != nil {
			return err
		}
	}
	defer func() {
		if !saved {
			_ = file.Close()
			_ = os.Remove(o.file)
		}
	}()
	command, commandErr := a.serviceCommand(o.serviceName)
	files := bundle.Collect(ctx, a.bundleParts(o, command, commandErr, now), func(part bundle.Part) {
		if a.env.Terminal {
			s.warn("collecting %s", part.What)
		}
	})
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	const remark = "What looks like a password, key or token is removed. Names are in it. Look at the file before you send it.\n"
	bundle.Clean(files)
	var packed bytes.Buffer
	if err := bundle.Write(&packed, files, remark, now); err != nil {
		return err
	}
	if o.file == standardOutput {
		fmt.Fprint(s.err, bundle.Contents(files)+remark)
		_, err := a.env.Out.Write(packed.Bytes())
		return err
	}
	if _, err := file.Write(packed.Bytes()); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	saved = true
	list := []output.Object{}
	for _, f := range files {
		list = append(list, output.Object{{Name: "name", Value: f.Name}, {Name: "content", Value: f.What}, {Name: "bytes", Value: len(f.Content)}, {Name: "problem", Value: f.Problem}})
	}
	return s.Value(output.Object{{Name: "file", Value: o.file}, {Name: "parts", Value: list}}, func() string {
		return bundle.Contents(files) + remark + fmt.Sprintf("%s: written, %s\n", o.file, printable.Size(int64(packed.Len())))
	})
}

// standardOutput is the --file for programs that store the bundle elsewhere, such as kubectl csi-proxy.
const standardOutput = "-"

// bundleParts are the files of the bundle. Those that other commands print come from these commands, so
// that they are what support knows.
func (a *app) bundleParts(o bundleOptions, command string, commandErr error, now time.Time) []bundle.Part {
	printed := func(name, what string, args ...string) bundle.Part {
		return bundle.Part{Name: name, What: what, Make: func(ctx context.Context) ([]byte, error) { return a.printed(ctx, args...) }}
	}
	// A node that hangs is asked once.
	var once sync.Once
	var node inventory.Node
	nodeErr := errors.New("it could not be looked at") // also after a panic, so that no secret gets out
	ofNode := func(name, what string, write func(io.Writer, inventory.Node) error) bundle.Part {
		return bundle.Part{Name: name, What: what, Clean: true, Make: func(ctx context.Context) ([]byte, error) {
			once.Do(func() {
				found, err := a.lookOnce(ctx, &view{})
				node, nodeErr = output.CopyWith(found, bundle.RemoveSecrets), err
			})
			if nodeErr != nil {
				return nil, errors.New(sentence(ctx, nodeErr))
			}
			var text bytes.Buffer
			err := write(&text, node)
			return text.Bytes(), err
		}}
	}
	logFile, metrics := o.logFile, o.metrics
	if logFile == "" {
		logFile = installation.LogFile(command)
	}
	if metrics == "" {
		metrics = installation.MetricsAddress(command)
	}
	return []bundle.Part{
		{Name: "version.txt", What: "name of the machine, version and system of csi-proxyctl, and the time", Make: func(context.Context) ([]byte, error) {
			return fmt.Appendf(nil, "%s\n%s %s\n%s/%s %s\n%s\n", a.env.Host, name, version.Full(), runtime.GOOS, runtime.GOARCH, doctor.WindowsBuild(), now.UTC().Format(time.RFC3339)), nil
		}},
		printed("versions.txt", "endpoints, and the versions of the server", "versions", "-o", "wide"),
		{Name: "flags.txt", What: "command line of the service", Make: func(context.Context) ([]byte, error) {
			if commandErr != nil {
				return nil, commandErr
			}
			return []byte(command + "\n"), nil
		}},
		printed("doctor.txt", "what doctor finds", "doctor", "--service-name", o.serviceName, "--log-file", logFile),
		ofNode("node.json", "disks, volumes, mounts and shares, for programs", func(w io.Writer, node inventory.Node) error {
			return (&output.Printer{Out: w, Format: output.JSON}).Value(node, nil)
		}),
		ofNode("node.txt", "the same as a tree", func(w io.Writer, node inventory.Node) error {
			_, err := io.WriteString(w, node.Draw(&output.Printer{Format: output.Wide}, 0))
			return err
		}),
		ofNode("node.html", "the same as a web page", webpage.Write),
		{Name: "log.txt", What: "the end of the log file", Make: func(context.Context) ([]byte, error) { return tail(logFile) }},
		{Name: "crash.txt", What: "the last crash of the daemon", Make: func(context.Context) ([]byte, error) {
			return lastCrash(installation.CrashFiles(logFile, command))
		}},
		{Name: "metrics.txt", What: "metrics", Make: func(ctx context.Context) ([]byte, error) { return scrape(ctx, metrics) }},
	}
}

func lastCrash(files []string) ([]byte, error) {
	for _, file := range files {
		if text, err := tail(file); err != nil && !errors.Is(err, fs.ErrNotExist) || len(text) > 0 {
			return text, err
		}
	}
	return nil, errors.New("there is no trace of one")
}

func (a *app) serviceCommand(serviceName string) (string, error) {
	manager, err := a.env.Services()
	if err != nil {
		return "", err
	}
	defer manager.Close()
	service, err := manager.Open(serviceName)
	if err != nil {
		return "", fmt.Errorf("service %s: %w", serviceName, err)
	}
	defer service.Close()
	config, err := service.Config()
	return config.Command, err
}

// printed runs another command and returns what it prints. Standard error is the problem of the part;
// problems that doctor finds are not errors.
func (a *app) printed(ctx context.Context, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	env := a.env
	env.In, env.Out, env.Err = strings.NewReader(""), &out, &errs
	env.Terminal, env.Width, env.ReadSecret = false, nil, nil
	args = append(args, "--endpoint-dir", a.dir, "--timeout", bundle.PartTimeout.String())
	for _, owner := range a.trustedOwners {
		args = append(args, "--trusted-owner", owner)
	}
	Run(ctx, args, env)
	if text := strings.TrimSpace(errs.String()); text != "" {
		return out.Bytes(), errors.New(strings.TrimPrefix(text, name+": "))
	}
	return out.Bytes(), nil
}

// tail returns the last lines of a log file.
func tail(file string) ([]byte, error) {
	if file == "" {
		return nil, errors.New("its name is not known; pass --log-file")
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: file, Err: errors.New("it is not a file")}
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	const limit = bundle.MaxPart
	offset := max(0, info.Size()-limit)
	text, err := io.ReadAll(io.NewSectionReader(opened, offset, limit))
	if offset > 0 { // the first line is cut, maybe in a secret
		_, text, _ = bytes.Cut(text, []byte("\n"))
		if len(text) == 0 && err == nil {
			err = fmt.Errorf("the last line has more than %s", printable.Size(limit))
		}
	}
	return text, err
}

// scrape returns the metrics. It asks the address itself, and no other that answers in its place.
func scrape(ctx context.Context, address string) ([]byte, error) {
	if address == "" {
		return nil, errors.New("the address is not known, or the daemon serves none; pass --metrics-address")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // without a proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, bundle.MaxPart+1))
}
