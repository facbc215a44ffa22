package remote

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// reloadEvery is how often the client is made to look for the masters at most. When
// all nodes are dead each look dials all of them, on top of the probes.
const reloadEvery = 400 * time.Millisecond

// Masters tells which master of a Cluster serves a key, as its client believes.
type Masters struct {
	client clusterClient
	ended  context.Context
	epoch  time.Time
	next   atomic.Int64 // since the epoch: no look before
}

// clusterClient is what a [redis.ClusterClient] has, and what is built on one.
type clusterClient interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	ReloadState(ctx context.Context)
}

// NewMasters returns nil unless rdb is a Cluster client.
func NewMasters(rdb redis.UniversalClient) *Masters {
	c, ok := rdb.(clusterClient)
	if !ok {
		return nil
	}
	m := &Masters{client: c, epoch: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m.ended = ctx
	return m
}

// Of gives the address of the master of a key, or "" while the client does not know
// any. It does no I/O: the client gets a context that has ended, so it can answer
// only from what it knows.
func (m *Masters) Of(key string) string {
	c, err := m.client.MasterForKey(m.ended, key)
	if err != nil {
		return ""
	}
	return c.Options().Addr
}

// Reload has the client look for the masters anew, in the background: by itself it
// does so only when a node tells it that a slot has moved, or once a minute, and a
// dead node tells nothing. Calls that come too often do nothing.
func (m *Masters) Reload() {
	now := int64(time.Since(m.epoch))
	if next := m.next.Load(); now >= next && m.next.CompareAndSwap(next, now+int64(reloadEvery)) {
		m.client.ReloadState(m.ended)
	}
}
