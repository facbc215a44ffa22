package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/internal/redistest"
)

// A storm is a plan under way.
type storm struct {
	*plan
	t       *testing.T
	redis   *redistest.Redis
	folder  string
	begun   int64
	workers []*stormer // in the slots
	all     []*stormer // also those that were killed
	stopped []*stormer // who stand still
	diary   []string
	kills   int
	stops   int
}

// A stormer is a worker of a storm.
type stormer struct {
	*process
	story string
	slot  int
}

func newStorm(t *testing.T, p *plan) *storm {
	t.Helper()
	s := &storm{
		plan: p, t: t, redis: redistest.Server(t), folder: t.TempDir(),
		workers: make([]*stormer, slots),
	}
	for i := range slots {
		s.workers[i] = &stormer{process: startProcess(t), slot: i}
	}
	s.begun = stamp()
	for _, w := range s.workers {
		s.send(w)
	}
	return s
}

// send sends a worker into the storm.
func (s *storm) send(w *stormer) {
	w.story = filepath.Join(s.folder, fmt.Sprint(len(s.all)))
	s.all = append(s.all, w)
	order[Nothing](w.process, "Stormer.Storm", StormOrder{
		Addr: s.redis.Addr(), Fronts: s.fronts, Timeout: s.timeout, Slot: w.slot,
		Seed: s.seed, Begun: s.begun, StoryOf: w.story, Lifetime: len(s.all),
	})
}

func (s *storm) note(what string) {
	s.diary = append(s.diary, fmt.Sprintf("%v: %s", time.Duration(stamp()-s.begun), what))
}

// replace kills the worker in a slot, without any warning, and starts another one.
func (s *storm) replace(slot int) {
	old := s.workers[slot]
	s.stopped = slices.DeleteFunc(s.stopped, func(w *stormer) bool { return w == old })
	old.kill()
	s.kills++
	s.workers[slot] = &stormer{process: startProcess(s.t), slot: slot}
	s.send(s.workers[slot])
}

// stop lets the worker in a slot stand still. It returns nil if that one does so
// already.
func (s *storm) stop(slot int) *stormer {
	w := s.workers[slot]
	if slices.Contains(s.stopped, w) {
		return nil
	}
	w.signal("STOP")
	s.stopped = append(s.stopped, w)
	s.stops++
	return w
}

// resume lets a worker go on, if it was stopped and lives.
func (s *storm) resume(w *stormer) {
	if i := slices.Index(s.stopped, w); i >= 0 {
		w.signal("CONT")
		s.stopped = slices.Delete(s.stopped, i, i+1)
	}
}

// mend ends all faults.
func (s *storm) mend() {
	s.note("all mended")
	s.redis.Thaw()
	s.redis.Heal()
	for len(s.stopped) > 0 {
		s.resume(s.stopped[0])
	}
}

// recovered reports whether all breakers are closed.
func (s *storm) recovered() bool {
	for _, w := range s.workers {
		states := order[[]string](w.process, "Stormer.Breakers", Nothing{})
		if slices.ContainsFunc(states, func(state string) bool { return state != "closed" }) {
			return false
		}
	}
	return true
}

// calm ends the load, and the limiters of those who are left. What they tell must
// be what they wrote down.
func (s *storm) calm() {
	answers := make([][]StormAnswer, slots)
	var work sync.WaitGroup
	for i, w := range s.workers {
		work.Go(func() { answers[i] = order[[]StormAnswer](w.process, "Stormer.Calm", Nothing{}) })
	}
	work.Wait()
	for i, w := range s.workers {
		if len(answers[i]) != len(s.fronts) {
			s.t.Errorf("worker %d told of %d limiters, want %d", i, len(answers[i]), len(s.fronts))
			continue
		}
		records, _ := readStory(s.t, w.story)
		for front, a := range answers[i] {
			a.check(s.t, fmt.Sprintf("worker %d, front %d", i, front), front, records)
		}
	}
}
