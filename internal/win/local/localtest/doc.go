// Package localtest holds the tests of internal/win/local that need Windows or Wine, as cases that a
// program can run as well: csi-proxy-verify does.
package localtest
