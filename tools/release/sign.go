package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// signer signs programs for Windows, with osslsigncode, if it has a certificate.
type signer struct {
	certificate     string
	key             string
	timestampServer string
	home            string // address of the project, which Windows shows with the signature; may be empty
	date            time.Time
}

// sign signs the programs for Windows in place. Without a timestamp server it uses the date of the
// release, so that the signatures are reproducible.
func (s signer) sign(ctx context.Context, programs []program) error {
	if s.certificate == "" && s.key == "" {
		return nil
	}
	if s.certificate == "" || s.key == "" {
		return errors.New("sign: a certificate needs its key, and a key its certificate")
	}
	tool, err := osslsigncode()
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	for _, p := range programs {
		if !p.windows() {
			continue
		}
		args := []string{
			"sign", "-certs", s.certificate, "-key", s.key, "-h", "sha256", "-n", "CSI Proxy",
			"-st", strconv.FormatInt(s.date.Unix(), 10),
		}
		if s.home != "" {
			args = append(args, "-i", s.home)
		}
		if s.timestampServer != "" {
			args = append(args, "-ts", s.timestampServer)
		}
		signed := p.path + ".signed"
		out, err := exec.CommandContext(ctx, tool, append(args, "-in", p.path, "-out", signed)...).CombinedOutput() //nolint:gosec // the files are flags
		if err != nil {
			return fmt.Errorf("sign %s: %w\n%s", p.path, err, out)
		}
		if err := os.Rename(signed, p.path); err != nil {
			return err
		}
	}
	return nil
}

// osslsigncode returns the program that OSSLSIGNCODE names, or the installed one.
func osslsigncode() (string, error) {
	if tool := os.Getenv("OSSLSIGNCODE"); tool != "" {
		return tool, nil
	}
	tool, err := exec.LookPath("osslsigncode")
	if err != nil {
		return "", fmt.Errorf("%w; install it, or run tools/release/install-osslsigncode.sh and set OSSLSIGNCODE", err)
	}
	return tool, nil
}
