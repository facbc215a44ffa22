package main

import (
	"context"
	"os"
	"time"
)

// watch calls changed with the content of a file each time that it differs from the
// last one, until the context ends. It asks the file system every now and then, which works on every
// system, for mounted volumes and for links that are exchanged, as those of a
// Kubernetes ConfigMap are. A file that cannot be read, or is empty because somebody
// is just writing it, is as good as unchanged.
func watch(ctx context.Context, file string, last string, every time.Duration, changed func(text string)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		// Some file systems count time in seconds, so the content is compared, not the
		// time: a file of rules is small.
		text, err := os.ReadFile(file)
		if err != nil || len(text) == 0 || string(text) == last {
			continue
		}
		last = string(text)
		changed(last)
	}
}
