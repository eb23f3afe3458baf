{{/* The name of all objects: the release's name, plus the chart's name if it is not part of it. */}}
{{- define "csi-proxy.name" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{ .Values.fullnameOverride | default $name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* The command that runs csi-proxyctl on a node. */}}
{{- define "csi-proxy.exec" -}}
kubectl -n {{ .Release.Namespace }} exec "$(kubectl -n {{ .Release.Namespace }} get pods -l app.kubernetes.io/name={{ .Chart.Name }} --field-selector spec.nodeName=NODE -o name)" -- '%CONTAINER_SANDBOX_MOUNT_POINT%\csi-proxyctl.exe'
{{- end -}}

{{/* Refuses a limit at which Windows would end the daemon while it is still within memoryLimitMiB. */}}
{{- define "csi-proxy.resources" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString -}}
{{- $number := regexFind "^[0-9.]+" $limit -}}
{{- $unit := get (dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776) (trimPrefix $number $limit) -}}
{{- if and $number $unit (lt (mulf (float64 $number) $unit) (mulf .Values.memoryLimitMiB 1048576)) -}}
{{- fail (printf "resources.limits.memory is %s, which is less than memoryLimitMiB, %v MiB: set that lower, too" $limit .Values.memoryLimitMiB) -}}
{{- end -}}
{{- toYaml .Values.resources -}}
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
