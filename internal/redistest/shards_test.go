package redistest_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/internal/redistest"
)

func TestShards(t *testing.T) {
	t.Parallel()
	s := redistest.Shards(t, 3)
	c := s.Client()
	ctx := t.Context()
	owner := func(key string) string {
		t.Helper()
		m, err := c.MasterForKey(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		return m.Options().Addr
	}
	homes := map[string]string{} // a key of each master
	for i := range 50 {
		key := "key" + itoa(i)
		if v, err := incr.Run(ctx, c, []string{key}).Int(); v != 1 || err != nil {
			t.Fatalf("%s = %d, %v, want 1", key, v, err)
		}
		homes[owner(key)] = key
	}
	if len(homes) != 3 {
		t.Fatalf("the keys are on %d masters, want 3", len(homes))
	}

	// A slot moves with its key.
	key := homes[s.Addr(0)]
	s.MoveSlot(int(c.ClusterKeySlot(ctx, key).Val()), 0, 1)
	if v, err := incr.Run(ctx, c, []string{key}).Int(); v != 2 || err != nil {
		t.Errorf("after the move %s = %d, %v, want 2", key, v, err)
	}

	// A master dies, and its replica has its keys.
	key = homes[s.Addr(2)]
	s.Kill(2)
	s.AwaitPromotion(2)
	c.ReloadState(ctx)
	for deadline := time.Now().Add(20 * time.Second); incr.Run(ctx, c, []string{key}).Err() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the keys of the dead master do not come back")
		}
		c.ReloadState(ctx)
	}
	if v, err := c.Get(ctx, key).Int(); v < 2 || err != nil {
		t.Errorf("after the promotion %s = %d, %v, want 2 at least", key, v, err)
	}
	if v, err := c.Get(ctx, homes[s.Addr(1)]).Int(); v != 1 || err != nil {
		t.Errorf("a key of another master = %d, %v, want 1", v, err)
	}
}
