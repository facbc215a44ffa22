package local

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// An Entry is what a Table holds.
type Entry interface {
	comparable
	// Retire is asked whether the entry can be forgotten now. If so, the entry
	// takes leave of whatever it holds, must not be used again, and says true. It
	// is called under the table's lock: it must not block or use the table.
	Retire() bool
}

// A Table maps keys to entries, a bounded number of them. When it is full an
// entry that was not used lately makes room for a new one (the CLOCK
// algorithm), and if none can, the newcomer stays outside.
//
// It may be used by many goroutines at once. [Table.Get] takes no lock, unless
// the entry is just being asked to retire, and for a key in use it writes
// nothing.
type Table[E Entry] struct {
	seed   maphash.Seed
	shards []shard[E]
	len    atomic.Int64
	gone   atomic.Uint64
}

type shard[E Entry] struct {
	index atomic.Pointer[index[E]] // read by anybody
	mu    sync.Mutex               // guards what follows, and changes of the index
	ring  []*slot[E]
	hand  int
	most  int     // slots the ring may have
	_     [8]byte // two shards do not share a cache line
}

// steps is how many entries one newcomer may look at to find room.
const steps = 16

// A shard is full when its part of the limit is, so a small table has few: the
// keys then spread over them evenly enough.
const (
	shardBits     = 6
	maxShards     = 1 << shardBits
	leastPerShard = 64
)

// NewTable returns an empty table for at most limit ≥ 1 keys.
func NewTable[E Entry](limit int) *Table[E] {
	n := maxShards
	for n > 1 && limit/n < leastPerShard {
		n /= 2
	}
	t := &Table[E]{seed: maphash.MakeSeed(), shards: make([]shard[E], n)}
	for i := range t.shards {
		s := &t.shards[i]
		s.index.Store(newIndex[E](1))
		s.most = limit / n
		if i < limit%n {
			s.most++
		}
	}
	return t
}

func (t *Table[E]) shard(hash uint64) *shard[E] {
	return &t.shards[hash&uint64(len(t.shards)-1)]
}

// Get returns the entry of a key: never one that had been retired when Get was
// called.
func (t *Table[E]) Get(key string) (e E, ok bool) {
	hash := maphash.String(t.seed, key)
	s := t.shard(hash)
	sl := s.index.Load().find(hash, key)
	switch {
	case sl == nil:
		return e, false
	case sl.use():
		return sl.entry, true
	default: // it may be on its way out
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.get(hash, key)
	}
}

// get is Get for the holder of mu, for whom no entry is on its way out.
func (s *shard[E]) get(hash uint64, key string) (e E, ok bool) {
	if sl := s.index.Load().find(hash, key); sl != nil {
		sl.use()
		return sl.entry, true
	}
	return e, false
}

// GetOrAdd returns the entry of a key, made by add if there is none yet. It
// says false, and adds nothing, if there is no room.
func (t *Table[E]) GetOrAdd(key string, add func() E) (e E, ok bool) {
	if e, ok = t.Get(key); ok {
		return e, true
	}
	hash := maphash.String(t.seed, key)
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok = s.get(hash, key); ok {
		return e, true
	}
	at, ok := t.room(s)
	if !ok {
		return e, false
	}
	sl := &slot[E]{hash: hash, key: key, entry: add()}
	if at == len(s.ring) {
		s.ring = append(s.ring, sl)
		t.len.Add(1)
	} else {
		s.ring[at] = sl
	}
	s.index.Load().link(sl)
	return sl.entry, true
}

// room finds a place in the ring for a newcomer, which may be the one of an
// entry that goes. mu is held.
func (t *Table[E]) room(s *shard[E]) (at int, ok bool) {
	if at = len(s.ring); at < s.most {
		if at >= s.index.Load().size() {
			s.grow()
		}
		return at, true
	}
	for range min(steps, 2*len(s.ring)) {
		at, s.hand = s.hand, (s.hand+1)%len(s.ring)
		old := s.ring[at]
		switch {
		case !old.leave():
		case old.entry.Retire():
			s.index.Load().unlink(old)
			t.gone.Add(1)
			return at, true
		default:
			old.stay()
		}
	}
	return 0, false
}

// grow moves the shard to an index of twice the size. Whoever reads the old one
// meanwhile must find everything where it was: the slots are copied. mu is held.
func (s *shard[E]) grow() {
	x := newIndex[E](2 * s.index.Load().size())
	for i, old := range s.ring {
		sl := &slot[E]{hash: old.hash, key: old.key, entry: old.entry}
		sl.state.Store(old.state.Load())
		s.ring[i] = sl
		x.link(sl)
	}
	s.index.Store(x)
}

// All calls f for each entry, under no lock: an entry may have been forgotten
// since, and one that was added since is not visited.
func (t *Table[E]) All(f func(E)) {
	var page []E
	for i := range t.shards {
		s := &t.shards[i]
		page = page[:0]
		s.mu.Lock()
		for _, sl := range s.ring {
			page = append(page, sl.entry)
		}
		s.mu.Unlock()
		for _, e := range page {
			f(e)
		}
	}
}

// Len is the number of keys.
func (t *Table[E]) Len() int { return int(t.len.Load()) }

// Evicted is how many keys were forgotten for others.
func (t *Table[E]) Evicted() uint64 { return t.gone.Load() }

// Bucket picks one of n by the key, the same one each time, in a way that
// nobody outside can foresee.
func (t *Table[E]) Bucket(key string, n int) int {
	return int(maphash.String(t.seed, key) >> 32 % uint64(n))
}
