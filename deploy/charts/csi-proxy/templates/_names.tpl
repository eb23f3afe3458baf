{{/* The name of all objects: the release's name, plus the chart's name if it is not part of it. */}}
{{- define "csi-proxy.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* The selector of the DaemonSet and the Service. It is immutable. */}}
{{- define "csi-proxy.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "csi-proxy.labels" -}}
{{ include "csi-proxy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* With a digest the default tag is omitted: the digest decides. */}}
{{- define "csi-proxy.image" -}}
{{- with .Values.image -}}
{{- $tag := .tag | default (ternary "" $.Chart.AppVersion (not (empty .digest))) -}}
{{ .repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}
