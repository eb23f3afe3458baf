package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// otherNames are what users of kubectl, crictl and lsblk type, by the command of ours.
var otherNames = map[string][]string{
	"node":      {"tree", "show", "status", "lsblk", "describe", "nodes"},
	"watch":     {"top", "live"},
	"doctor":    {"check", "diagnose", "health"},
	"disk":      {"disks"},
	"volume":    {"volumes", "vol"},
	"fs":        {"filesystem", "file", "files"},
	"smb":       {"share", "shares"},
	"list":      {"get", "show"},
	"versions":  {"version"},
	"rmdir":     {"rm", "delete", "remove"},
	"mkdir":     {"create"},
	"unmount":   {"umount", "dismount"},
	"resize":    {"grow", "expand", "extend"},
	"offline":   {"off", "detach"},
	"online":    {"on", "attach"},
	"read-only": {"readonly", "ro"},
	"writable":  {"read-write", "rw"},
}

// suggestNames gives cobra the other names of a command and its subcommands.
func suggestNames(c *cobra.Command) {
	c.SuggestFor = otherNames[c.Name()]
	switch c.Name() {
	case "list":
		c.Aliases = []string{"ls"}
	case "ls":
		c.Aliases = []string{"list"}
	}
	c.SuggestionsMinimumDistance = 2
	for _, child := range c.Commands() {
		suggestNames(child)
	}
}

// verbs are what users of kubectl type before the kind of an object.
var verbs = []string{"get", "list", "ls", "show", "describe"}

// noCommand is the error for words of which the first is not a command of c.
func noCommand(c *cobra.Command, words ...string) error {
	word := words[0]
	typed := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), name) + " " + word)
	var found []string
	if len(words) > 1 && slices.Contains(verbs, word) {
		for _, child := range c.Commands() {
			if list, _, err := child.Find([]string{"list"}); err == nil && list != child && (child.Name() == words[1] || slices.Contains(child.SuggestFor, words[1])) {
				return usagef("unknown command %q%s", typed+" "+words[1], didYouMean([]string{list.CommandPath()}))
			}
		}
	}
	for _, child := range c.Commands() { // what others call it is certain; what looks alike is not
		if slices.Contains(child.SuggestFor, word) {
			found = append(found, child.CommandPath())
		}
	}
	if len(found) == 0 {
		for _, child := range c.SuggestionsFor(word) {
			found = append(found, c.CommandPath()+" "+child)
		}
	}
	if len(found) == 0 {
		found = named(c.Root(), word) // perhaps it is in another group
	}
	return usagef("unknown command %q%s", typed, didYouMean(found))
}

// maxSuggestions keeps the error short.
const maxSuggestions = 3

func didYouMean(found []string) string {
	if len(found) == 0 {
		return ""
	}
	return "; did you mean '" + strings.Join(found[:min(len(found), maxSuggestions)], "' or '") + "'?"
}

func named(c *cobra.Command, word string) (found []string) {
	for _, child := range c.Commands() {
		if child.Name() == word || slices.Contains(child.Aliases, word) {
			found = append(found, child.CommandPath())
		}
		found = append(found, named(child, word)...)
	}
	return found
}
