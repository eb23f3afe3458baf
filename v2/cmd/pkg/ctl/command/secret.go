package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// secretFlags are the ways to pass a secret. A secret is never an argument, because process
// lists and shell histories show arguments.
type secretFlags struct {
	word  string // "password"
	file  string
	stdin bool
}

func (f *secretFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.file, f.word+"-file", "", "read the "+f.word+" from the first line of this file")
	set.BoolVar(&f.stdin, f.word+"-stdin", false, "read the "+f.word+" from the first line of standard input")
}

func (f *secretFlags) given() bool { return f.file != "" || f.stdin }

// read returns the secret, and prompts for it if no flag is set.
func (f *secretFlags) read(env Environment, prompt string) (string, error) {
	switch {
	case f.file != "" && f.stdin:
		return "", usagef("use either --%s-file or --%s-stdin, not both", f.word, f.word)
	case f.file != "":
		file, err := os.Open(f.file)
		if err != nil {
			return "", usageError{fmt.Errorf("--%s-file: %w", f.word, err)}
		}
		defer file.Close()
		return f.firstLine(file)
	case f.stdin:
		return f.firstLine(env.In)
	case env.ReadSecret == nil:
		return "", usagef("cannot prompt for the %s: standard input is not a terminal; use --%s-file or --%s-stdin", f.word, f.word, f.word)
	}
	secret, err := env.ReadSecret(prompt)
	if err == nil && secret == "" {
		err = usagef("the %s is empty", f.word)
	}
	return secret, err
}

// firstLine returns the first line. Spaces belong to the secret.
func (f *secretFlags) firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the %s: %w", f.word, err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", usagef("the %s is empty", f.word)
	}
	return line, nil
}
