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
	// As the schema of the chart's values has it, so that the chart does not refuse itself.
	imageRepository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*$`)
)

// checkNames reports what is wrong with the names that files of the release will have in them.
func (r *release) checkNames() error {
	if !releaseVersion.MatchString(r.version) {
		return fmt.Errorf("version %q: it is not of the form v2.0.0 or v2.0.0-rc.1", r.version)
	}
	if !imageRepository.MatchString(r.imageRepository) {
		return fmt.Errorf("image repository %q: it is not of the form registry.example/csi-proxy, without a tag", r.imageRepository)
	}
	return nil
}

// overrideHint is the way out for whoever tries a release rather than makes one.
const overrideHint = "; 'make release UNRELEASED=1' does it nevertheless, for files that nobody publishes"

// checkSource reports why a directory does not hold the source of a version: programs would name
// a commit that they were not built from, or a version that somebody else's checkout has not.
func checkSource(ctx context.Context, dir, version string) error {
	changed, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return fmt.Errorf("the source has changes that no commit has, in %q among others; commit them%s", strings.TrimSpace(changed[0][2:]), overrideHint)
	}
	tags, err := git(ctx, dir, "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if !slices.Contains(tags, version) {
		return fmt.Errorf("the commit that is checked out has no tag %s, but %q; tag it, or check the tag out%s", version, tags, overrideHint)
	}
	return nil
}

// git returns the lines that a git command prints about a directory.
func git(ctx context.Context, dir string, args ...string) ([]string, error) {
	out, err := output(ctx, dir, "git", args...)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, overrideHint)
	}
	return slices.Collect(strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' })), nil
}

// output returns what a program prints when it runs in a directory. Its complaints are in the error.
func output(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // our own arguments, and names of modules that the linker has written
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
