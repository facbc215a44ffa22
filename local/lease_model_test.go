package local_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/local"
)

// A ledger runs a lease step by step beside a model that knows every token.
type ledger struct {
	lease local.Lease
	now   int64

	balance, opens, end, low int64
	shut                     bool
	unreported               int64 // spent since the last report

	kept    int64 // as last reported, while a message is under way
	flying  bool
	granted int64 // net of what the root cut off
	spent   int64
	calls   int64 // that have spent something
	gone    int64 // returned or lost
}

// step makes one step and compares.
func (g *ledger) step(kind byte, x uint16) error {
	l, n := &g.lease, int64(x%40)
	switch kind % 8 {
	case 0:
		g.now += n
	case 1:
		gate := g.opens
		if g.shut {
			gate = 0
		}
		want := n >= 1 && g.now < gate && n <= g.balance
		left, low, ok := l.Take(g.now, n)
		if ok != want {
			return fmt.Errorf("Take(%d, %d) of %d is %v, want %v", g.now, n, g.balance, ok, want)
		}
		if ok {
			g.spend(n)
			if left != g.balance || low != (g.balance < g.low) {
				return fmt.Errorf("Take left %d, low %v; want %d, %v", left, low, g.balance, g.balance < g.low)
			}
		}
	case 2:
		want := n >= 1 && g.now < g.end && n <= g.balance
		if ok := l.TakeLate(g.now, n); ok != want {
			return fmt.Errorf("TakeLate(%d, %d) of %d is %v, want %v", g.now, n, g.balance, ok, want)
		}
		if want {
			g.spend(n)
		}
	case 3:
		kept, spent, lost := l.Report(g.now)
		if err := g.account("Report", kept, spent, lost); err != nil {
			return err
		}
		g.kept, g.flying = kept, true
	case 4:
		if g.flying {
			g.grant(n, int64(x>>6)%64, int64(x>>10))
		}
	case 5:
		g.shut = x%2 == 0
		l.Shut(g.shut)
	case 6:
		g.low = 0
		l.Quiet()
	case 7:
		held, spent, lost := remove(l, g.now)
		if err := g.account("Remove", held, spent, lost); err != nil {
			return err
		}
		g.balance, g.gone = 0, g.gone+held
		g.opens, g.end, g.flying = 0, 0, false
	}
	return g.check()
}

func (g *ledger) spend(n int64) {
	g.balance -= n
	g.unreported += n
	g.spent += n
	g.calls++
}

// account checks what the lease says of itself.
func (g *ledger) account(what string, held, spent, lost int64) error {
	wantHeld, wantLost := g.balance, int64(0)
	if g.now >= g.end {
		wantHeld, wantLost = 0, g.balance
	}
	if held != wantHeld || spent != g.unreported || lost != wantLost {
		return fmt.Errorf("%s: held %d, spent %d, lost %d; want %d, %d, %d",
			what, held, spent, lost, wantHeld, g.unreported, wantLost)
	}
	g.unreported = 0
	g.balance -= lost
	g.gone += lost
	return nil
}

// grant answers the message under way.
func (g *ledger) grant(total, open, late int64) {
	g.opens, g.end, g.low = g.now+open, g.now+open+late, total/5
	g.lease.Grant(g.kept, total, g.opens, g.end, g.low)
	next := max(0, g.balance+total-g.kept)
	g.granted += next - g.balance
	g.balance, g.flying = next, false
}

func (g *ledger) check() error {
	visible := g.balance
	if g.now >= g.end {
		visible = 0
	}
	if got := g.lease.Balance(g.now); got != visible {
		return fmt.Errorf("the balance is %d, want %d", got, visible)
	}
	if got, want := g.lease.Idle(), g.balance == 0; got != want {
		return fmt.Errorf("idle is %v with a balance of %d", got, g.balance)
	}
	if got, want := g.lease.Due(g.now), g.end > 0 && (g.balance < g.low || g.now >= g.opens); got != want {
		return fmt.Errorf("due is %v, want %v", got, want)
	}
	if got := g.lease.Calls(); got != g.calls {
		return fmt.Errorf("%d calls, want %d", got, g.calls)
	}
	if g.balance < 0 || g.spent+g.gone+g.balance != g.granted {
		return fmt.Errorf("granted %d, spent %d, gone %d, held %d", g.granted, g.spent, g.gone, g.balance)
	}
	return nil
}

func TestLeaseAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g ledger
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if err := g.step(rapid.Byte().Draw(t, "kind"), rapid.Uint16().Draw(t, "x")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzLease(f *testing.F) {
	f.Add([]byte{3, 0, 0, 4, 255, 255, 1, 3, 0, 2, 5, 0, 3, 0, 0, 2, 2, 0, 4, 1, 255, 7, 0, 0})
	f.Add([]byte("report, grant, take, shut, report, cut, remove"))
	f.Fuzz(func(t *testing.T, tape []byte) {
		var g ledger
		for ; len(tape) >= 3; tape = tape[3:] {
			if err := g.step(tape[0], uint16(tape[1])|uint16(tape[2])<<8); err != nil {
				t.Fatal(err)
			}
		}
	})
}
