package winpath

import "strings"

// Contains reports whether path is dir or lies below it, component by component:
// C:\kubelet does not contain C:\kubelet-evil. Both must be clean.
//
// It goes by spelling. A link on the way can lead out of dir; and where an
// administrator made a directory case-sensitive, names can differ that are the
// same here.
// https://learn.microsoft.com/windows/wsl/case-sensitivity
func Contains(dir, path string) bool {
	rest, ok := cutFold(path, dir)
	return ok && (rest == "" || rest[0] == '\\' || strings.HasSuffix(dir, Separator))
}
