package call

import (
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

// withCommands replaces methods and options that a server's error advises by commands and flags: those after the first
// semicolon, and what to do something with, as in (remove it with Rmdir).
func withCommands(err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.Unimplemented {
		return err
	}
	words, advice := strings.Split(s.Message(), " "), false
	if len(words) > 3 && words[0] == "line" && strings.HasSuffix(words[2], ":") { // of a change that we have written, not the user
		words = words[3:]
	}
	for i, word := range words {
		name := strings.Trim(word, `'"(),`)
		switch command := Commands[name]; {
		case command != "" && (advice || i > 0 && words[i-1] == "with"):
			words[i] = strings.Replace(word, name, "'"+command+"'", 1)
		case advice && name == "force" && words[i-1] == "set":
			words[i-1], words[i] = "use", strings.Replace(word, name, "--force", 1)
		}
		advice = advice || strings.HasSuffix(word, ";")
	}
	message := s.Proto()
	message.Message = strings.Join(words, " ")
	return status.ErrorProto(message)
}
