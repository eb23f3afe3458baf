// Small is a tiny program for tests that pack and sign. It links one foreign module, so that the
// release must pass on a licence.
package main

import "go.yaml.in/yaml/v3"

func main() { _ = yaml.Unmarshal(nil, nil) }
