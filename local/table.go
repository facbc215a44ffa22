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
// It may be used by many goroutines at once.
type Table[E Entry] struct {
	seed   maphash.Seed
	shards []shard[E]
	len    atomic.Int64
	gone   atomic.Uint64
}

type shard[E Entry] struct {
	mu   sync.RWMutex // guards what follows; the used marks are atomic
	m    map[string]*slot[E]
	ring []*slot[E]
	hand int
	most int      // slots the ring may have
	_    [16]byte // two shards' locks do not share a cache line
}

type slot[E Entry] struct {
	key   string
	entry E
	used  atomic.Bool
}

// steps is how many entries one newcomer may look at to find room.
const steps = 16

// A shard is full when its part of the limit is, so a small table has few: the
// keys then spread over them evenly enough.
const (
	maxShards     = 64
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
		t.shards[i].m = make(map[string]*slot[E])
		t.shards[i].most = limit / n
		if i < limit%n {
			t.shards[i].most++
		}
	}
	return t
}

func (t *Table[E]) shard(key string) *shard[E] {
	return &t.shards[maphash.String(t.seed, key)&uint64(len(t.shards)-1)]
}

// Get returns the entry of a key.
func (t *Table[E]) Get(key string) (e E, ok bool) {
	s := t.shard(key)
	s.mu.RLock()
	sl, ok := s.m[key]
	s.mu.RUnlock()
	if !ok {
		return e, false
	}
	if !sl.used.Load() {
		sl.used.Store(true)
	}
	return sl.entry, true
}

// GetOrAdd returns the entry of a key, made by add if there is none yet. It
// says false, and adds nothing, if there is no room.
func (t *Table[E]) GetOrAdd(key string, add func() E) (e E, ok bool) {
	if e, ok = t.Get(key); ok {
		return e, true
	}
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sl, ok := s.m[key]; ok {
		sl.used.Store(true)
		return sl.entry, true
	}
	if len(s.ring) < s.most {
		sl := &slot[E]{key: key, entry: add()}
		s.ring = append(s.ring, sl)
		s.m[key] = sl
		t.len.Add(1)
		return sl.entry, true
	}
	for range min(steps, 2*len(s.ring)) {
		old := s.ring[s.hand]
		at := s.hand
		s.hand = (s.hand + 1) % len(s.ring)
		if old.used.Swap(false) || !old.entry.Retire() {
			continue
		}
		delete(s.m, old.key)
		t.gone.Add(1)
		sl := &slot[E]{key: key, entry: add()}
		s.ring[at] = sl
		s.m[key] = sl
		return sl.entry, true
	}
	return e, false
}

// All calls f for each entry, under no lock: an entry may have been forgotten
// since, and one that was added since is not visited.
func (t *Table[E]) All(f func(E)) {
	var page []E
	for i := range t.shards {
		s := &t.shards[i]
		page = page[:0]
		s.mu.RLock()
		for _, sl := range s.ring {
			page = append(page, sl.entry)
		}
		s.mu.RUnlock()
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
