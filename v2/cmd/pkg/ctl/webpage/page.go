// Package webpage draws a node's storage as an HTML page: disks to scale, what is on them, who uses
// it, and what is wrong.
//
// The page is one file. It loads nothing, and its content security policy allows only its own
// script and style. Names come from devices, servers and pods. The template escapes them, and they
// are never part of the script.
package webpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
)

var (
	//go:embed page.html
	source string
	//go:embed style.css
	style string
	//go:embed script.js
	script string

	pages = template.Must(template.New("page").Parse(source))
)

// common is the policy of both kinds of page: our script and style, and the icon, which is in the
// page. Styles have no attributes: CSP would have to allow all of them.
var common = "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + "; img-src data:; base-uri 'none'; form-action 'none'; " +
	"require-trusted-types-for 'script'; trusted-types"

// hash is the source expression of CSP for an inline script or style.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Policy returns the content security policy of a live page, for the header.
func Policy() string { return policy(true) + "; frame-ancestors 'none'" }

func policy(live bool) string {
	if live {
		return common + " content; connect-src 'self'"
	}
	return common + " 'none'"
}

// Stamp is the form of a page's time.
const Stamp = "2006-01-02 15:04:05 UTC"

type document struct {
	Policy string
	Style  template.CSS
	Script template.JS
	At     time.Time
	Stamp  string
	// Events is the address of the server's events, for a live page.
	Events string
	Content
}

// Content is a node, ready to be written.
type Content struct{ content }

// New prepares a node.
func New(node inventory.Node) Content { return Content{view(node)} }

// Write writes a page that shows the node as it was when it was described.
func Write(w io.Writer, node inventory.Node) error {
	return New(node).write(w, node.At, "")
}

// WriteLive writes a page that updates itself from a server's events, at an address relative to its
// own. The events are: node, with what WriteContent writes; seen, with the time of a description in
// the form Stamp; failure, with why there is no description.
func (c Content) WriteLive(w io.Writer, at time.Time, events string) error {
	return c.write(w, at, events)
}

// WriteContent writes the part of a page that changes with the node.
func (c Content) WriteContent(w io.Writer) error { return execute(w, "content", c) }

func (c Content) write(w io.Writer, at time.Time, events string) error {
	at = at.UTC()
	return execute(w, "page", document{
		Policy: policy(events != ""), Style: template.CSS(style), Script: template.JS(script), //nolint:gosec // constants of this package
		At: at, Stamp: at.Format(Stamp), Events: events, Content: c,
	})
}

// execute writes nothing if the template fails.
func execute(w io.Writer, name string, data any) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}
