// Package virtdisk makes files disks of this machine, by virtdisk.dll. It exists on Windows only.
// csi-proxy-verify uses it; the daemon does not.
package virtdisk
