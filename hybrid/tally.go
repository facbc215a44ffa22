package hybrid

import "sync"

// A tally counts messages under way. Unlike with a WaitGroup, one may begin
// while somebody waits for the last to end.
type tally struct {
	mu   sync.Mutex // guards what follows
	n    int
	none chan struct{} // closed at the next n = 0
}

func (t *tally) add() {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// zero returns a channel that is closed when nothing is under way.
func (t *tally) zero() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	if t.n == 0 {
		close(none)
		t.none = nil
	}
	return none
}
