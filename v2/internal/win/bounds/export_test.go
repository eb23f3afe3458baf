package bounds

// SetMost replaces maxThreads, which are more goroutines than the race detector knows.
func (b *Machine) SetMost(calls int) { b.most = calls }
