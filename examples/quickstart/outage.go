package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// outage pulls the plug, goes on asking, and plugs it in again.
func outage(ctx context.Context, say *log.Logger, lim *hybrid.Limiter, plug *plug, events <-chan hybrid.Event) error {
	say.Println("-- Redis is cut off")
	plug.pull()
	allowed, refused := 0, 0
	for range 45 {
		res, err := lim.Allow(ctx, "bob")
		if err != nil {
			return err // an outage is not an error: it shows in res.Source
		}
		if res.Source != hybrid.SourceDegraded {
			return fmt.Errorf("decided by %v without Redis", res.Source)
		}
		if res.Allowed {
			allowed++
		} else {
			refused++
		}
	}
	say.Printf("bob:   %2d allowed and %d refused by this instance alone", allowed, refused)
	e, err := await[hybrid.Degraded](ctx, events)
	if err != nil {
		return err
	}
	say.Printf("event: degraded (%s): this instance goes on with 1/%d of the limit", e.Class, e.Instances)

	say.Println("-- Redis is back")
	plug.push()
	r, err := await[hybrid.Recovered](ctx, events)
	if err != nil {
		return err
	}
	say.Printf("event: recovered by itself, degraded for %v", r.Duration.Round(time.Millisecond))
	res, err := lim.Allow(ctx, "bob")
	if err != nil {
		return err
	}
	say.Printf("bob:   allowed: %v, decided by %v", res.Allowed, res.Source)
	return nil
}

// await returns the next event of one kind.
func await[E hybrid.Event](ctx context.Context, events <-chan hybrid.Event) (found E, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		select {
		case e := <-events:
			if found, ok := e.(E); ok {
				return found, nil
			}
		case <-ctx.Done():
			return found, errors.New("the event did not come")
		}
	}
}
