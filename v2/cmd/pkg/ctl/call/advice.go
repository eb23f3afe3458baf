package call

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Commands maps methods, and fields of changes of an emulated node, that the server's advice names to the commands that call them.
var Commands = map[string]string{ //nolint:gosec // G101: the names of methods and commands, not credentials
	"AddTargetPortal":           "csi-proxyctl iscsi portal add",
	"ConnectTarget":             "csi-proxyctl iscsi connect",
	"Describe":                  "csi-proxyctl sim show",
	"DiscoverTargetPortal":      "csi-proxyctl iscsi portal discover",
	"FormatVolume":              "csi-proxyctl volume format",
	"GetVolumeIDFromTargetPath": "csi-proxyctl volume of-path",
	"ListDiskIDs":               "csi-proxyctl disk ids",
	"ListVolumesOnDisk":         "csi-proxyctl volume list",
	"Mkdir":                     "csi-proxyctl fs mkdir",
	"PartitionDisk":             "csi-proxyctl disk partition",
	"Rescan":                    "csi-proxyctl disk rescan",
	"Rmdir":                     "csi-proxyctl fs rmdir",
	"SetDiskState":              "csi-proxyctl disk online",
	"SetMutualChapSecret":       "csi-proxyctl iscsi mutual-chap",
	"StartService":              "csi-proxyctl system service start",
	"smbPasswords":              "csi-proxyctl sim account password",
}

// methodInText matches a method in a sentence before the advice, as in (remove it with Rmdir).
var methodInText = regexp.MustCompile(`( with )(` + methods + `)\b`)

var methods = strings.Join(slices.Sorted(maps.Keys(Commands)), "|")

// methodInAdvice matches a method with an optional argument, as in StartService("MSiSCSI") of
// the System group. A method in a path does not match.
var methodInAdvice = regexp.MustCompile(`(^|[ '"(])(` + methods + `)\b(?:\("([^"]*)"\))?(?: of the \w+ group)?`)

// position is where the emulated node found a mistake in a change. We have written the change, not the user.
var position = regexp.MustCompile(`^line \d+: [\w.\[\]]+: `)

// withCommands replaces methods and options in the advice of a server's error, which follows
// the first semicolon, by commands and flags.
func withCommands(err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.Unimplemented {
		return err
	}
	text, advice, found := strings.Cut(position.ReplaceAllString(s.Message(), ""), "; ")
	text = methodInText.ReplaceAllStringFunc(text, func(match string) string {
		parts := methodInText.FindStringSubmatch(match)
		return parts[1] + "'" + Commands[parts[2]] + "'"
	})
	advice = strings.ReplaceAll(advice, "set force", "use --force")
	advice = methodInAdvice.ReplaceAllStringFunc(advice, func(match string) string {
		parts := methodInAdvice.FindStringSubmatch(match)
		return parts[1] + "'" + strings.TrimSpace(Commands[parts[2]]+" "+parts[3]) + "'"
	})
	message := s.Proto()
	message.Message = text
	if found {
		message.Message += "; " + advice
	}
	return status.ErrorProto(message)
}
