package wmi

import (
	"regexp"
	"strings"
)

// query is a request in WQL of the form that the daemon sends.
type query struct {
	class, property, value string
}

var wql = regexp.MustCompile(`^(?i)SELECT \* FROM (\w+)(?: WHERE (\w+) = '((?:[^\\']|\\.)*)')?$`)

var unescape = regexp.MustCompile(`\\(.)`)

// parseQuery reads a query. In texts a backslash makes the next character an ordinary one.
func parseQuery(text string) (query, error) {
	match := wql.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return query{}, errInvalidQuery
	}
	return query{class: match[1], property: match[2], value: unescape.ReplaceAllString(match[3], "$1")}, nil
}

// matches reports whether an instance is asked for. Texts are compared without regard to
// case, as WMI does.
func (q query) matches(instance Values) bool {
	if q.property == "" {
		return true
	}
	_, value, _ := lookup(instance, q.property)
	text, ok := value.(string)
	return ok && strings.EqualFold(text, q.value)
}
