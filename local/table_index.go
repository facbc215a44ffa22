package local

import "sync/atomic"

// An index is a hash table of a fixed size whose chains anybody may read while
// its owner, under a lock, links and unlinks slots. A slot that was unlinked
// still leads on to what comes after it, so a reader who stands on it loses
// nothing that is there all the time; what is linked comes first in its chain.
type index[E Entry] struct {
	heads []atomic.Pointer[slot[E]] // a power of two of them
}

// A slot is one key of a table.
type slot[E Entry] struct {
	hash  uint64
	key   string
	entry E
	next  atomic.Pointer[slot[E]]
	state atomic.Uint32
}

// The states of a slot. The hand of the clock makes a used one idle and an idle
// one leaving; only its use makes it used again.
const (
	idle uint32 = iota
	used
	leaving // for good, or until its entry has said that it stays
)

// use marks the slot as used, unless it is leaving. It writes only if it must,
// so that a slot in use stays in the caches of all cores.
func (sl *slot[E]) use() bool {
	return sl.state.Load() == used || sl.state.CompareAndSwap(idle, used) || sl.state.Load() == used
}

// leave makes an idle slot leave and a used one idle.
func (sl *slot[E]) leave() bool {
	if sl.state.CompareAndSwap(idle, leaving) {
		return true
	}
	sl.state.Store(idle)
	return false
}

// stay takes leave back.
func (sl *slot[E]) stay() { sl.state.Store(idle) }

func newIndex[E Entry](size int) *index[E] {
	return &index[E]{heads: make([]atomic.Pointer[slot[E]], size)}
}

func (x *index[E]) size() int { return len(x.heads) }

// head is where the chain of a hash begins. Its low bits have picked the shard.
func (x *index[E]) head(hash uint64) *atomic.Pointer[slot[E]] {
	return &x.heads[hash>>shardBits&uint64(len(x.heads)-1)]
}

// find may be called by anybody.
func (x *index[E]) find(hash uint64, key string) *slot[E] {
	for sl := x.head(hash).Load(); sl != nil; sl = sl.next.Load() {
		if sl.hash == hash && sl.key == key {
			return sl
		}
	}
	return nil
}

func (x *index[E]) link(sl *slot[E]) {
	head := x.head(sl.hash)
	sl.next.Store(head.Load())
	head.Store(sl)
}

func (x *index[E]) unlink(sl *slot[E]) {
	at := x.head(sl.hash)
	for at.Load() != sl {
		at = &at.Load().next
	}
	at.Store(sl.next.Load())
}
