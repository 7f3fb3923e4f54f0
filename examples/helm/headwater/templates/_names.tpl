{{- define "headwater.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "headwater.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "headwater.labels" -}}
{{ include "headwater.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "headwater.secret" -}}
{{ .Values.postgres.existingSecret | default (printf "%s-postgres" (include "headwater.name" .)) }}
{{- end }}

{{- define "headwater.environment" -}}
{{- if .Values.postgres.host }}
- name: HEADWATER_STORE
  value: {{ printf "postgresql://%s@%s:%v/%s?sslmode=%s" .Values.postgres.user .Values.postgres.host .Values.postgres.port .Values.postgres.database .Values.postgres.sslmode | quote }}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "headwater.secret" . }}
      key: {{ .Values.postgres.passwordKey }}
{{- end }}
- name: HEADWATER_SERVE__TRUSTED_PROXIES
  value: {{ .Values.serve.trustedProxies | toJson | quote }}
- name: HEADWATER_SERVE__DRAIN_SECONDS
  value: {{ .Values.serve.drainSeconds | quote }}
- name: HEADWATER_SERVE__SHUTDOWN_SECONDS
  value: {{ .Values.serve.shutdownSeconds | quote }}
{{- with .Values.serve.basePath }}
- name: HEADWATER_SERVE__BASE_PATH
  value: {{ . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
