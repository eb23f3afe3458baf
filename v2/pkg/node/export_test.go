package node

// BeganWithWindows makes a Node believe that it has seen everything since Windows started.
func BeganWithWindows(n *Node) error {
	n.began = -1 << 62
	n.healCalls = healCalls{last: n.m.Elapsed(), any: true}
	return nil
}
