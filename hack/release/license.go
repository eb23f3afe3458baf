package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// knownLicenses are the licences that we may pass on, each with what its text says and no other's
// does. A clause that has an excluded sentence belongs to another one.
var knownLicenses = []struct{ id, says, excluded string }{
	{id: "Apache-2.0", says: "apache license version 2 0 january 2004"},
	{id: "Apache-2.0", says: "licensed under the apache license version 2 0"},
	{id: "MIT", says: "permission is hereby granted free of charge to any person obtaining a copy of this software"},
	{id: "BSD-3-Clause", says: "be used to endorse or promote products derived from this software without specific prior written permission"},
	{id: "BSD-2-Clause", says: "redistribution and use in source and binary forms with or without modification are permitted", excluded: "endorse or promote products"},
}

// notWords is what texts of the same licence differ by: line breaks, indents, quotes.
var notWords = regexp.MustCompile(`[^a-z0-9]+`)

// licensesOf returns the SPDX names of the licences of a text, sorted. A text may have several.
func licensesOf(text string) ([]string, error) {
	words := notWords.ReplaceAllString(strings.ToLower(text), " ")
	var found []string
	for _, known := range knownLicenses {
		if strings.Contains(words, known.says) && (known.excluded == "" || !strings.Contains(words, known.excluded)) {
			found = append(found, known.id)
		}
	}
	if len(found) == 0 {
		beginning := strings.TrimSpace(text)
		return nil, fmt.Errorf("it is of no licence that may be passed on unseen; it begins with %.60q", beginning)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
