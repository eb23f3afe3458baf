package filesystem

import fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"

// PathExistsRequest asks whether Path, an absolute path on a local drive, exists.
type PathExistsRequest struct {
	Path string
}

// PathExistsResponse reports whether anything has the name, a dangling link included.
type PathExistsResponse struct {
	Exists bool
}

// PathValidRequest asks whether Path, local or \\server\share\..., can be reached.
type PathValidRequest struct {
	Path string
}

// PathValidResponse reports whether Path leads to something that can be opened.
type PathValidResponse struct {
	Valid bool
}

// ListDirectoryRequest asks for the names in Path, a directory.
type ListDirectoryRequest struct {
	Path string
}

// ListDirectoryResponse has at most MaxListed entries, by name.
type ListDirectoryResponse struct {
	Entries   []fsapi.DirectoryEntry
	Truncated bool // there are more
}

// GetPathStatsRequest asks about the volume or share that Path, an absolute path on a local drive,
// leads to.
type GetPathStatsRequest struct {
	Path string
}

// GetPathStatsResponse reports how large and how full it is. The quotas of a server count.
type GetPathStatsResponse struct {
	TotalBytes, UsedBytes, AvailableBytes int64
}

// MkdirRequest asks for a directory and its missing parents.
type MkdirRequest struct {
	Path string
}

// MkdirResponse is empty.
type MkdirResponse struct{}

// RmdirRequest asks to remove a directory, link or mounted folder.
type RmdirRequest struct {
	Path string
	// Force removes a directory that is not empty, and files. What lies behind
	// a link or a mounted folder is never removed.
	Force bool
}

// RmdirResponse is empty.
type RmdirResponse struct{}

// RmdirContentsRequest asks to empty a directory and keep it.
type RmdirContentsRequest struct {
	Path string
}

// RmdirContentsResponse is empty.
type RmdirContentsResponse struct{}

// CreateSymlinkRequest asks for a directory link at TargetPath that leads to
// SourcePath.
type CreateSymlinkRequest struct {
	SourcePath string
	TargetPath string
}

// CreateSymlinkResponse is empty.
type CreateSymlinkResponse struct{}

// IsSymlinkRequest asks about the link or mounted folder at Path.
type IsSymlinkRequest struct {
	Path string
}

// IsSymlinkResponse reports whether Path is a link or mounted folder whose target
// exists.
type IsSymlinkResponse struct {
	IsSymlink bool
}

// SetRecordRequest asks to keep a record, which is JSON of at most 8 KiB, or to remove it if Record is empty.
type SetRecordRequest struct {
	Path   string
	Record string
}

// SetRecordResponse is empty.
type SetRecordResponse struct{}

// GetRecordRequest asks for the record of Path.
type GetRecordRequest struct {
	Path string
}

// GetRecordResponse has a record, or nothing if there is none. Problem says why one cannot be used.
type GetRecordResponse struct {
	Record  string
	Problem string
}
