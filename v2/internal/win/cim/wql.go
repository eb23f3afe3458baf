package cim

import "strings"

// wql is the query for the instances of an object. The names in it are ours; the value can
// come from a request.
// https://learn.microsoft.com/windows/win32/wmisdk/wql-sql-for-wmi
func wql(object Object) string {
	query := "SELECT * FROM " + object.Class
	if object.Property != "" {
		query += " WHERE " + object.Property + " = '" + escape.Replace(object.Value) + "'"
	}
	return query
}

// escape makes a text part of a string literal. A quote is escaped by a backslash, not by
// another quote as in SQL.
var escape = strings.NewReplacer(`\`, `\\`, `'`, `\'`)
