// Small is a program that does nothing, to be packed and signed.
package main

func main() {}
