package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A Line is one of the event log.
type Line struct {
	At   float64 `json:"t"`    // seconds since the start
	Who  string  `json:"who"`  // "Redis", "you", "instance 1"
	Kind string  `json:"kind"` // a word for programs
	Text string  `json:"text"`
}

// say adds a line; the lock is held.
func (e *engine) say(who, kind, text string) {
	l := Line{At: e.at(), Who: who, Kind: kind, Text: text}
	e.lines = append(e.lines, l)
	if len(e.lines) > keptLines {
		e.lines = slices.Delete(e.lines, 0, len(e.lines)-keptLines)
	}
	e.send("line", l)
}

// at is now, in seconds since the start.
func (e *engine) at() float64 { return float64(time.Since(e.begun).Milliseconds()) / 1000 }

// describe is an event in words. Those that would come again and again have none:
// probes that fail, and limits that are nearly used up.
func describe(event hybrid.Event) (kind, text string) {
	switch v := event.(type) {
	case hybrid.Degraded:
		return "degraded", fmt.Sprintf("degraded (%s): goes on with a part of 1/%d", v.Class, v.Instances)
	case hybrid.Recovered:
		return "recovered", fmt.Sprintf("recovered after %v: %d admitted and %d refused meanwhile",
			v.Duration.Round(time.Millisecond), v.Allowed, v.Refused)
	case hybrid.BreakerChanged:
		if v.To == "half-open" || v.From == "half-open" && v.To == "open" {
			return "", ""
		}
		return "breaker", fmt.Sprintf("breaker: %s to %s", v.From, v.To)
	case hybrid.Misconfigured:
		return "misconfigured", fmt.Sprintf("misconfigured (%s): %v", v.Class, v.Err)
	case hybrid.InstancesChanged:
		return "instances", fmt.Sprintf("%d instances reach Redis, lately %d", v.Live, v.Peak)
	case hybrid.StateLost:
		return "lost", fmt.Sprintf("Redis had lost the bucket: it goes on with %d", v.Left)
	case hybrid.LimitMismatch:
		return "mismatch", fmt.Sprintf("applies %v and not %v, as another instance does", v.Theirs, v.Ours)
	}
	return "", ""
}

// changes says what differs between settings.
func changes(old, s Settings) string {
	var parts []string
	add := func(name string, was, is any, unit string) {
		if was != is {
			parts = append(parts, fmt.Sprintf("%s %v%s, was %v", name, is, unit, was))
		}
	}
	add("limit", old.Limit, s.Limit, "/s")
	add("burst", old.Burst, s.Burst, "")
	add("load", old.Load, s.Load, "/s")
	add("skew", old.Skew, s.Skew, "")
	add("instances", old.Instances, s.Instances, "")
	add("local share", old.Share, s.Share, "")
	add("horizon", old.Horizon, s.Horizon, " ms")
	add("algorithm", old.Algorithm, s.Algorithm, "")
	return strings.Join(parts, "; ")
}
