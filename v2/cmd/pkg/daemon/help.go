package daemon

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	helpAllFlag = "help-all"
	helpWidth   = 100
	helpIndent  = 30 // of what flags mean
)

// usage prints the common flags, or all of them. An operator sees what to set on one screen.
func (e *execution) usage(set *flag.FlagSet, all bool) {
	fmt.Fprintf(e.stdout, "%s\n\nUsage: %s [flags]\n\nFlags, with one dash or two:\n", e.Summary, e.Name)
	set.VisitAll(func(f *flag.Flag) {
		if all || slices.Contains(e.Common, f.Name) {
			printFlag(e.stdout, f)
		}
	})
	if !all {
		fmt.Fprintf(e.stdout, "\nFor the other flags, run: %s -%s\n", e.Name, helpAllFlag)
	}
}

func printFlag(out io.Writer, f *flag.Flag) {
	value, meaning := flag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "false", "0":
	default:
		meaning += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	line := strings.TrimSuffix("  -"+f.Name+" "+value, " ")
	if len(line) >= helpIndent {
		fmt.Fprintln(out, line)
		line = ""
	}
	line += strings.Repeat(" ", helpIndent-len(line)-1)
	for word := range strings.FieldsSeq(meaning) {
		if len(line)+1+len(word) > helpWidth {
			fmt.Fprintln(out, line)
			line = strings.Repeat(" ", helpIndent-1)
		}
		line += " " + word
	}
	fmt.Fprintln(out, line)
}
