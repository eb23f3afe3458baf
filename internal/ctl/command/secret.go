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

// secretFlags are the ways to give a secret. There is none as an argument: process lists
// and the history of shells show those.
type secretFlags struct {
	word  string // "password"
	file  string
	stdin bool
}

func (f *secretFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.file, f.word+"-file", "", "file whose first line is the "+f.word)
	set.BoolVar(&f.stdin, f.word+"-stdin", false, "read the "+f.word+" from the first line of standard input")
}

// given reports whether a flag says where the secret is.
func (f *secretFlags) given() bool { return f.file != "" || f.stdin }

// read returns the secret, and asks for it if no flag says where it is.
func (f *secretFlags) read(env Environment, prompt string) (string, error) {
	switch {
	case f.file != "" && f.stdin:
		return "", usagef("--%s-file and --%s-stdin exclude each other", f.word, f.word)
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
		return "", usagef("nobody can be asked for the %s here: give --%s-file or --%s-stdin", f.word, f.word, f.word)
	}
	secret, err := env.ReadSecret(prompt)
	if err == nil && secret == "" {
		err = usagef("the %s is empty", f.word)
	}
	return secret, err
}

// firstLine returns a line without its end. Spaces belong to the secret.
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
