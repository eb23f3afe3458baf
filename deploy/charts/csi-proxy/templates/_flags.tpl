{{/* The daemon's flags, one per line. */}}
{{- define "csi-proxy.flags" -}}
- {{ printf "-kubelet-path=%s" .Values.kubeletPath | toYaml }}
{{- range .Values.workingDirs }}
- {{ printf "-working-dir=%s" . | toYaml }}
{{- end }}
{{- if .Values.allowUnsafeWorkingDirs }}
- -allow-unsafe-working-dirs
{{- end }}
{{- with .Values.apiGroups }}
- {{ printf "-api-groups=%s" (join "," .) | toYaml }}
{{- end }}
{{- with .Values.allowedServices }}
- {{ printf "-allowed-services=%s" (join "," .) | toYaml }}
{{- end }}
{{- with .Values.pipeSecurityDescriptor }}
- {{ printf "-pipe-security-descriptor=%s" . | toYaml }}
{{- end }}
- -require-privacy={{ .Values.requirePrivacy }}
{{- if .Values.smbRefuseOtherUser }}
- -smb-refuse-other-user
{{- end }}
- -heal-stale-mounts={{ .Values.healStaleMounts | default "off" }}
{{- if .Values.formatExisting }}
- -format-existing
{{- end }}
{{- with .Values.format }}
{{- if .fileSystem }}
- -format-file-system={{ .fileSystem }}
{{- end }}
{{- if .allocationUnitSize }}
- -format-allocation-unit-size={{ int .allocationUnitSize }}
{{- end }}
{{- if .label }}
- {{ printf "-format-label=%s" .label | toYaml }}
{{- end }}
{{- if .rootAccess }}
- {{ printf "-format-root-access=%s" .rootAccess | toYaml }}
{{- end }}
{{- end }}
- -stop-timeout={{ int .Values.stopTimeoutSeconds }}s
- -memory-limit={{ int .Values.memoryLimitMiB }}MiB
{{- with .Values.fullVolume }}
- -full-volume={{ . }}
{{- end }}
{{- if not .Values.mitigations }}
- -mitigations=false
{{- end }}
{{- if eq .Values.metrics.bind "loopback" }}
- -metrics-bind-address=127.0.0.1:{{ int .Values.metrics.port }}
{{- else if eq .Values.metrics.bind "node" }}
- -metrics-bind-address=[$(NODE_ADDRESS)]:{{ int .Values.metrics.port }}
{{- end }}
{{- if and (ne .Values.metrics.bind "none") (not .Values.metrics.storage) }}
- -metrics-storage=false
{{- end }}
{{- if not .Values.metrics.askShares }}
- -ask-shares=false
{{- end }}
{{- with .Values.log.file }}
- {{ printf "-log_file=%s" . | toYaml }}
- -logtostderr=false
- -alsologtostderr
{{- end }}
- -v={{ int .Values.log.level }}
{{- end -}}
