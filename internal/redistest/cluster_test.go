package redistest_test

import (
	"strings"
	"testing"

	"github.com/resilient-go/limiter/internal/redistest"
)

func TestClusterSlots(t *testing.T) {
	t.Parallel()
	r := redistest.Cluster(t)
	c := r.Client()
	ctx := t.Context()
	slots := make(map[int64]bool)
	for i := range 20 {
		key := "key" + itoa(i)
		if v, err := incr.Run(ctx, c, []string{key}).Int(); v != 1 || err != nil {
			t.Fatalf("%s = %d, %v, want 1", key, v, err)
		}
		slots[c.ClusterKeySlot(ctx, key).Val()] = true
	}
	if len(slots) < 10 {
		t.Errorf("the keys are in %d slots only", len(slots))
	}
	if n := c.DBSize(ctx).Val(); n != 20 {
		t.Errorf("the cluster has %d keys, want 20", n)
	}
	// All of it came through the proxy: the client believes what the node
	// announces.
	if got := r.Counts().Runs; got != 20 {
		t.Errorf("the proxy saw %d scripts, want 20", got)
	}
	nodes, err := c.ClusterNodes(ctx).Result()
	if err != nil || !strings.Contains(nodes, " "+r.Addr()+"@") {
		t.Errorf("CLUSTER NODES = %q, %v, want %s in it", nodes, err, r.Addr())
	}
}
