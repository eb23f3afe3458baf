package winsim

import (
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// NTFS reads a name as file:stream:type. So a file is also file::$DATA, a directory is also
// dir::$INDEX_ALLOCATION, and each can have named streams. Names at the seam should not contain
// a colon; if a check is missing, these rules show the effect.
// https://learn.microsoft.com/openspecs/windows_protocols/ms-fscc/c54dec26-1551-4d3a-a0ea-4fa40f848eb3
// https://learn.microsoft.com/openspecs/windows_protocols/ms-fsa/8ada5fbe-db4e-49fd-aef6-20d54b748e40

// suffix is the part of a name after the colon.
type suffix struct {
	kind   streamKind
	stream string // of a named stream
	of     *entry // its file, or nil if that is missing
}

type streamKind uint8

const (
	noSuffix    streamKind = iota
	dataSuffix             // file::$DATA
	indexSuffix            // dir::$INDEX_ALLOCATION, dir:$I30:$INDEX_ALLOCATION
	namedStream            // file:stream, file:stream:$DATA
)

// innerTypes are the stream types of NTFS that cannot be opened.
var innerTypes = map[string]bool{
	"$STANDARD_INFORMATION": true, "$ATTRIBUTE_LIST": true, "$FILE_NAME": true, "$OBJECT_ID": true,
	"$SECURITY_DESCRIPTOR": true, "$VOLUME_NAME": true, "$VOLUME_INFORMATION": true, "$INDEX_ROOT": true,
	"$BITMAP": true, "$REPARSE_POINT": true, "$EA_INFORMATION": true, "$EA": true, "$LOGGED_UTILITY_STREAM": true,
}

// directorySuffixes are the suffixes that a directory can have inside a path.
var directorySuffixes = map[string]bool{
	":$I30": true, "::$INDEX_ALLOCATION": true, ":$I30:$INDEX_ALLOCATION": true, "::$BITMAP": true,
	":$I30:$BITMAP": true, "::$ATTRIBUTE_LIST": true, "::$REPARSE_POINT": true,
}

func (at resolvedPath) lookUpStream(last bool) (resolvedPath, error) {
	file, rest, _ := strings.Cut(at.name, ":")
	if err := checkName(file); err != nil {
		return resolvedPath{}, err
	}
	if at.fs.kind != NTFS && at.fs.kind != ReFS {
		return resolvedPath{}, winerr.InvalidName // no streams
	}
	suffix, err := parseSuffix(rest, last)
	if err != nil {
		return resolvedPath{}, err
	}
	at.fs.refreshName(at.parent, file)
	at.name, at.entry, at.suffix = file, at.parent.child(file), suffix
	switch {
	case at.entry == nil:
		return at, nil
	case suffix.kind == indexSuffix && at.entry.children == nil && last:
		return resolvedPath{}, winerr.Directory
	case suffix.kind == dataSuffix && at.entry.children != nil:
		return resolvedPath{}, winerr.AccessDenied // STATUS_FILE_IS_A_DIRECTORY
	case suffix.kind == namedStream:
		at.parent, at.name, at.suffix.of = at.entry, suffix.stream, at.entry
		at.entry = at.parent.streams[winpath.Fold(suffix.stream)]
	}
	return at, nil
}

func parseSuffix(text string, last bool) (suffix, error) {
	if !last {
		if directorySuffixes[winpath.Fold(":"+text)] {
			return suffix{kind: indexSuffix}, nil
		}
		return suffix{}, winerr.InvalidName
	}
	stream, kind, typed := strings.Cut(text, ":")
	if strings.ContainsFunc(stream, func(r rune) bool { return r == 0 || r == '/' }) || winpath.UTF16Len(stream) > winpath.MaxComponent {
		return suffix{}, winerr.InvalidName
	}
	kind = winpath.Fold(kind)
	switch {
	case !typed && stream != "" || kind == "$DATA" && stream != "":
		return suffix{kind: namedStream, stream: stream}, nil
	case kind == "$DATA":
		return suffix{kind: dataSuffix}, nil
	case kind == "$INDEX_ALLOCATION" && (stream == "" || winpath.Equal(stream, "$I30")):
		return suffix{kind: indexSuffix}, nil
	case kind == "$INDEX_ALLOCATION":
		return suffix{}, winerr.InvalidParameter
	case innerTypes[kind]:
		return suffix{}, winerr.AccessDenied
	default:
		return suffix{}, winerr.InvalidName
	}
}

func (s suffix) canBeDirectory() bool { return s.kind == noSuffix || s.kind == indexSuffix }

func (e *entry) addStream(name string, stream *entry) {
	if e.streams == nil {
		e.streams = map[string]*entry{}
	}
	stream.name, stream.parent, stream.isStream = name, e, true
	e.streams[winpath.Fold(name)] = stream
}
