package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// steps are what the file of the demonstration says, one after the other.
var steps = []string{
	`
search user:*:search 3/h
user   user:*        5/h
`,
	`
version 1
search user:*:search 10/h
user   user:*        5/h
`,
	`
version 2
user   user:*        blocked
search user:*:search 10 per hour
`,
	`
version 2
banned user:7:*      blocked
search user:*:search 10/h
user   user:*        5/h
`,
}

// demonstrate changes a file and shows what becomes of three keys.
func demonstrate(ctx context.Context, out io.Writer, addr string) error {
	say := log.New(out, "", 0)
	dir, err := os.MkdirTemp("", "hotreload")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "limits.txt")
	if err := replace(file, steps[0]); err != nil {
		return err
	}
	lim, stop, err := start(addr, steps[0])
	if err != nil {
		return err
	}
	defer stop()
	if err := show(ctx, say, lim); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	texts, ended := make(chan string), make(chan error, 1)
	go func() {
		ended <- watch(ctx, file, steps[0], 10*time.Millisecond, func(text string) {
			select {
			case texts <- text:
			case <-ctx.Done():
			}
		})
	}()
	for _, step := range steps[1:] {
		if err := replace(file, step); err != nil {
			return err
		}
		select {
		case text := <-texts:
			apply(say, lim, text)
		case err := <-ended:
			return err
		}
		if err := show(ctx, say, lim); err != nil {
			return err
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// replace writes a file in one step, so that nobody reads half of it.
func replace(file, text string) error {
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// show says which limit each key has, without using any of it up.
func show(ctx context.Context, say *log.Logger, lim *hybrid.Limiter) error {
	for _, key := range []string{"user:7:search", "user:8", "ip:192.0.2.1"} {
		res, err := lim.Peek(ctx, key)
		if err != nil {
			return err
		}
		by := "no rule"
		if rule, ok := lim.RuleFor(key); ok {
			by = rule.Name
		}
		say.Printf("  %-14s %-8s %v", key, by, res.Limit)
	}
	return nil
}
