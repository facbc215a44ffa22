package redistest

import "sync"

// A gate stops goroutines while it is shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while the gate is open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// pass waits until the gate is open. It returns false if cancel is closed
// before.
func (g *gate) pass(cancel <-chan struct{}) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return true
	}
	select {
	case <-opened:
		return true
	case <-cancel:
		return false
	}
}
