// Small is a program that does next to nothing, to be packed and signed. It has one module of
// somebody else, so that there is a licence to be passed on.
package main

import "go.yaml.in/yaml/v3"

func main() { _ = yaml.Unmarshal(nil, nil) }
