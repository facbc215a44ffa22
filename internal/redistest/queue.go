package redistest

import "sync"

// A queue is a first-in first-out list without a bound: put never blocks, so
// that a client can pipeline any number of commands before it reads a reply,
// as the buffers of real sockets let it.
type queue[T any] struct {
	mu     sync.Mutex
	cond   sync.Cond
	items  []T
	closed bool
}

func newQueue[T any]() *queue[T] {
	q := &queue[T]{}
	q.cond.L = &q.mu
	return q
}

func (q *queue[T]) put(v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, v)
	q.cond.Signal()
}

// close lets the taker finish what is in the queue.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Signal()
}

// take waits for an item. It returns false once the queue is closed and empty.
func (q *queue[T]) take() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if q.closed {
			return v, false
		}
		q.cond.Wait()
	}
	v = q.items[0]
	q.items = q.items[1:]
	return v, true
}
