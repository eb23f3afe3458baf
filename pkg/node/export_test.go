package node

import "time"

// BeganWithWindows makes a Node believe that it has seen everything since Windows started.
func BeganWithWindows(n *Node) error {
	n.began = time.Time{}
	n.looks = looks{last: n.m.Now()}
	return nil
}
