package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

var (
	releaseVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	// The same as in the schema of the chart's values.
	imageRepository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*$`)
	homeAddress     = regexp.MustCompile(`^https://[A-Za-z0-9.-]+(/[A-Za-z0-9._~-]+)*$`)
)

// checkNames checks the version and the image.
func (r *release) checkNames() error {
	if !releaseVersion.MatchString(r.version) {
		return fmt.Errorf("version %q: want the form v2.0.0 or v2.0.0-rc.1", r.version)
	}
	if !imageRepository.MatchString(r.imageRepository) {
		return fmt.Errorf("image repository %q: want the form registry.example/csi-proxy, without a tag", r.imageRepository)
	}
	if r.home != "" && !homeAddress.MatchString(r.home) {
		return fmt.Errorf("home %q: want the form https://github.com/OWNER/csi-proxy", r.home)
	}
	return nil
}

// overrideHint is for trying a release.
const overrideHint = "; to make files that are not published, run 'make release UNRELEASED=1'"

// checkSource fails if a directory does not hold the source of a version: otherwise the programs
// would name a commit that they were not built from.
func checkSource(ctx context.Context, dir, version string) error {
	changed, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return fmt.Errorf("the source has uncommitted changes, for example %q; commit them%s", strings.TrimSpace(changed[0][2:]), overrideHint)
	}
	tags, err := git(ctx, dir, "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if !slices.Contains(tags, version) {
		return fmt.Errorf("HEAD has no tag %s, only %q; tag it, or check out the tag%s", version, tags, overrideHint)
	}
	return nil
}

// git returns the lines that a git command prints in a directory.
func git(ctx context.Context, dir string, args ...string) ([]string, error) {
	out, err := output(ctx, dir, "git", args...)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, overrideHint)
	}
	return slices.Collect(strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' })), nil
}

// output returns the output of a program that runs in a directory. The error has its standard error.
func output(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // our own arguments, and module names from the linker
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=") // this tool runs without the workspace, the programs are built in it
	out, err := command.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", program, args[0], err)
	}
	return out, nil
}
