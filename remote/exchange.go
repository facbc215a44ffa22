package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis sends one time only. Its own retries, and on
// a cluster its redirects after time-outs, would run a script again whose reply
// was lost: one call would be charged up to four times. MOVED and ASK are still
// followed.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func command(ctx context.Context, verb, script string, k *call) once {
	args := make([]any, 0, 4+len(k.args))
	args = append(args, verb, script, 1, k.key)
	args = append(args, k.args...)
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return once{cmd}
}

// exchange sends the calls by the names of their scripts, and where a server
// does not know a name, once more with the script's body: nothing ran there.
func (c *Client) exchange(ctx context.Context, batch []*call) (results []result) {
	results = make([]result, len(batch))
	defer func() {
		if p := recover(); p != nil { // a hook of the user's client
			for i := range results {
				results[i] = result{err: &fault{Panic, fmt.Sprint(p)}}
			}
		}
	}()
	all := make([]int, len(batch))
	for i := range all {
		all[i] = i
	}
	taught := c.bodies.Load()
	unknown := c.byName(ctx, batch, results, all)
	if len(unknown) == 0 {
		return results
	}
	// One sender at a time teaches the servers, so that a flush does not make
	// everybody send the body. Whoever comes second finds it known.
	select {
	case c.load <- struct{}{}:
		defer func() { <-c.load }()
	case <-ctx.Done():
		return results
	}
	if c.bodies.Load() != taught {
		unknown = c.byName(ctx, batch, results, unknown)
	}
	for len(unknown) > 0 {
		// Each round teaches one server at least: a batch may span a cluster.
		i := unknown[0]
		k := batch[i]
		cmd := command(ctx, "EVAL", k.script.Text(), k)
		results[i] = resultOf(cmd, c.rdb.Process(ctx, cmd))
		c.bodies.Add(1) // afterwards: who saw the old number may not know yet
		if len(unknown) == 1 {
			break
		}
		unknown = c.byName(ctx, batch, results, unknown[1:])
	}
	return results
}

// byName sends the calls with the given indices as EVALSHA, in one pipeline,
// and returns the indices of those whose script the server did not know.
func (c *Client) byName(ctx context.Context, batch []*call, results []result, which []int) (unknown []int) {
	cmds := make([]once, len(which))
	for j, i := range which {
		cmds[j] = command(ctx, "EVALSHA", batch[i].script.SHA(), batch[i])
	}
	var err error
	if len(cmds) == 1 {
		err = c.rdb.Process(ctx, cmds[0])
	} else {
		pipe := c.rdb.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		_, err = pipe.Exec(ctx)
	}
	for j, i := range which {
		results[i] = resultOf(cmds[j], err)
		if errors.Is(results[i].err, redis.ErrNoScript) || redis.HasErrorPrefix(results[i].err, "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	return unknown
}

// resultOf takes a command's own error, and that of the whole exchange where a
// hook of the client has answered in place of the server and set none.
func resultOf(cmd once, all error) result {
	reply, err := cmd.Result()
	if reply == nil && err == nil {
		err = all
	}
	return result{reply, err}
}
