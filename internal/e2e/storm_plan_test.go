package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A plan is a storm before it has begun: what a seed stands for.
type plan struct {
	seed    uint64
	fronts  []Front
	limits  []hybrid.Limit
	timeout time.Duration
	events  []event
}

// An event is one thing that happens to the network or to a worker.
type event struct {
	at   time.Duration
	what string
	do   func(s *storm)
}

const (
	slots   = 20                 // workers at a time
	longest = 2 * time.Second    // the life of a lease of a key under load
	calmFor = (rush + 1) * phase // the network is well until the limits were used up once
)

// newPlan draws a plan with three fronts: one key with a large limit, three with
// one that is small for so many workers, and one key with a limit that is too
// small to share.
func newPlan(seed uint64, lasts time.Duration) *plan {
	rnd := rand.New(rand.NewPCG(seed, 0))
	between := func(low, high int) int { return low + rnd.IntN(high-low+1) }
	horizon := func() time.Duration { return time.Duration(between(200, 400)) * time.Millisecond }
	large, middle, small := between(150, 450), between(30, 80), between(3, 10)
	p := &plan{
		seed:    seed,
		timeout: time.Duration(between(300, 480)) * time.Millisecond, // a busy machine alone should seldom be an outage
		limits: []hybrid.Limit{
			hybrid.PerSecond(large).WithBurst(between(large/3, large)),
			hybrid.PerSecond(middle).WithBurst(between(middle/4, 2*middle)),
			[]hybrid.Limit{hybrid.PerSecond(small), hybrid.PerMinute(20 * small).WithBurst(small), hybrid.Per(7, 3*time.Second)}[rnd.IntN(3)],
		},
	}
	for i, keys := range []int{1, 3, 1} {
		p.fronts = append(p.fronts, Front{
			Limit: p.limits[i].String(), Keys: keys, Most: between(1, 2), Horizon: horizon(),
		})
	}
	p.troubleNetwork(rnd, lasts)
	p.troubleWorkers(rnd, lasts)
	slices.SortStableFunc(p.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return p
}

func (p *plan) add(at time.Duration, do func(*storm), format string, args ...any) {
	p.events = append(p.events, event{at, fmt.Sprintf(format, args...), do})
}

// troubleNetwork plans the faults of Redis and the way to it, one after the
// other, all kinds of them before one comes again. Each lasts for less than a
// time-out, for some of them, or for longer than a lease lives.
func (p *plan) troubleNetwork(rnd *rand.Rand, lasts time.Duration) {
	upTo := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
	heal := func(s *storm) { s.redis.Heal() }
	length := func() time.Duration {
		return []time.Duration{upTo(p.timeout), p.timeout + upTo(2*p.timeout), time.Second + upTo(time.Second)}[rnd.IntN(3)]
	}
	kinds := []func(at time.Duration) time.Duration{
		func(at time.Duration) time.Duration {
			p.add(at, func(s *storm) { s.redis.Partition() }, "partition for longer than a lease")
			p.add(at+longest, heal, "the partition ends")
			return longest
		},
		func(at time.Duration) time.Duration {
			d, long := upTo(p.timeout), length()
			p.add(at, func(s *storm) { s.redis.Delay(d) }, "answers come %v late for %v", d, long)
			p.add(at+long, heal, "they do not")
			return long
		},
		func(at time.Duration) time.Duration {
			d, long := p.timeout+upTo(p.timeout), length()
			p.add(at, func(s *storm) { s.redis.Delay(d) }, "answers come %v too late for %v", d-p.timeout, long)
			p.add(at+long, heal, "they do not")
			return long
		},
		func(at time.Duration) time.Duration {
			n := 1 + rnd.IntN(3*slots)
			p.add(at, func(s *storm) { s.redis.DropReplies(n) }, "%d answers are lost", n)
			return 0
		},
		func(at time.Duration) time.Duration {
			n := 1 + rnd.IntN(slots)
			p.add(at, func(s *storm) { s.redis.FailNext(n, "LOADING Redis is loading the dataset in memory") }, "%d answers are errors", n)
			return 0
		},
		func(at time.Duration) time.Duration {
			text := []string{"READONLY You can't write against a read only replica.", "BUSY Redis is busy", "OOM command not allowed"}[rnd.IntN(3)]
			long := length()
			p.add(at, func(s *storm) { s.redis.FailWith(text) }, "%s for %v", text, long)
			p.add(at+long, heal, "it answers again")
			return long
		},
		func(at time.Duration) time.Duration {
			long := length()
			p.add(at, func(s *storm) { s.redis.Partition() }, "partition for %v", long)
			p.add(at+long, heal, "the partition ends")
			return long
		},
		func(at time.Duration) time.Duration {
			long := length()
			p.add(at, func(s *storm) { s.redis.Freeze() }, "Redis stands still for %v", long)
			p.add(at+long, func(s *storm) { s.redis.Thaw() }, "Redis goes on")
			return long
		},
		func(at time.Duration) time.Duration {
			p.add(at, func(s *storm) { s.redis.ScriptFlush() }, "the scripts are flushed")
			return 0
		},
	}
	for at := calmFor; ; { // the first one is an outage for everybody
		rest := kinds[1:]
		if at > calmFor {
			rest = kinds
		}
		rnd.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		for _, kind := range kinds {
			if at += upTo(700 * time.Millisecond); at >= lasts {
				return
			}
			at += kind(at)
		}
	}
}

// troubleWorkers plans deaths, each with a birth, and stops that last longer than
// a lease of a key under load lives. Some of those come
// at any time. Others hit the busy few while nobody else does anything, and end
// when the rush begins: what they held is back at the root, all of the burst is
// there, and they must not spend it again.
func (p *plan) troubleWorkers(rnd *rand.Rand, lasts time.Duration) {
	upTo := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
	for at := upTo(time.Second); at < lasts; at += upTo(time.Second) {
		slot := rnd.IntN(slots)
		if rnd.IntN(3) > 0 {
			p.add(at, func(s *storm) { s.replace(slot) }, "worker %d is killed", slot)
		} else {
			p.stopFor(at, longest+upTo(time.Second), slot)
		}
	}
	for number := int64(0); time.Duration(number)*phase < lasts; number += cycle {
		for _, slot := range busy(p.seed, number) {
			if rnd.IntN(3) > 0 {
				begins := time.Duration(number)*phase + phase/3 + upTo(phase/4)
				ends := time.Duration(number+rush)*phase + upTo(phase/4)
				p.stopFor(begins, ends-begins, slot)
			}
		}
	}
}

func (p *plan) stopFor(at, long time.Duration, slot int) {
	var stopped *stormer
	p.add(at, func(s *storm) { stopped = s.stop(slot) }, "worker %d stands still for %v", slot, long)
	p.add(at+long, func(s *storm) { s.resume(stopped) }, "worker %d goes on", slot)
}

func (p *plan) String() string {
	text := fmt.Sprintf("%d workers, time-out %v", slots, p.timeout)
	for i, f := range p.fronts {
		text += fmt.Sprintf("; %v for each of %d keys, 1 to %d tokens, horizon %v", p.limits[i], f.Keys, f.Most, f.Horizon)
	}
	return text
}
