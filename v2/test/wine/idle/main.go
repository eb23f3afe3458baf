// Idle is a Go program that does nothing until it is ended. The memory it has under Wine is
// what every Go program has there, and none of it is CSI Proxy's.
package main

import (
	"os"
	"os/signal"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt)
	<-ended
}
