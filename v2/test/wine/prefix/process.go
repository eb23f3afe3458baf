//go:build linux

package prefix

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Process is a program that was started.
type Process struct {
	cmd    *exec.Cmd
	output string // the file
	done   chan struct{}
	err    error // after done
}

// Run runs a program to its end, and returns what it wrote to both of its outputs. A
// program that exits with another code than 0 is an *exec.ExitError with that code, as far
// as Linux can tell it: modulo 256.
func (p *Prefix) Run(ctx context.Context, program string, args ...string) (string, error) {
	process, err := p.Start(ctx, program, args...)
	if err != nil {
		return "", err
	}
	err = process.Wait()
	return process.Output(), err
}

// Start starts a program, which is killed when ctx ends.
func (p *Prefix) Start(ctx context.Context, program string, args ...string) (*Process, error) {
	return p.Launch(ctx, Program{Path: program, Args: args})
}

// Program is a program to start.
type Program struct {
	Path        string
	Args        []string
	Dir         string   // a directory of drive C: to start in; its root if empty
	Environment []string // further variables, NAME=value
}

// Launch is Start for programs that need a directory or variables of their own.
func (p *Prefix) Launch(ctx context.Context, program Program) (*Process, error) {
	name := program.Path[strings.LastIndexByte(program.Path, '\\')+1:]
	output, err := os.Create(p.log(fmt.Sprintf("%03d-%s.log", p.logs.Add(1), name)))
	if err != nil {
		return nil, err
	}
	defer output.Close() // the program has it, too
	process := &Process{output: output.Name(), done: make(chan struct{})}
	cmd := exec.CommandContext(ctx, p.wine.program("wine"), append([]string{program.Path}, program.Args...)...) //nolint:gosec // what tests are made of
	cmd.Dir = p.Path(cmp.Or(program.Dir, `C:\`))
	cmd.Env = append(p.environment(), program.Environment...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // an interrupt from the keyboard is for us, who then stop it
		Pdeathsig: syscall.SIGKILL, // it does not outlive us
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	process.cmd = cmd
	go func() {
		defer close(process.done)
		if err := cmd.Wait(); err != nil {
			process.err = fmt.Errorf("%s: %w\n%s", name, err, process.Output())
		}
	}()
	return process, nil
}

// Wait waits until the program has ended. Its error contains the output.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Interrupt is Ctrl+C.
func (p *Process) Interrupt() error { return p.cmd.Process.Signal(os.Interrupt) }

// Kill ends the program at once.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Output returns what the program has written so far.
func (p *Process) Output() string { return p.OutputFrom(0) }

// OutputFrom is Output without what is before an offset: who reads again and again does not read all again.
func (p *Process) OutputFrom(offset int) string {
	file, err := os.Open(p.output)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	output, err := io.ReadAll(io.NewSectionReader(file, int64(offset), math.MaxInt64-int64(offset)))
	if err != nil {
		return err.Error()
	}
	return string(output)
}
