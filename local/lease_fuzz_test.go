package local_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/resilient-go/limiter/local"
)

// books are kept of a lease that everything is done to, in any order, lumps and
// rates of any size mixed: messages whose answer is lost, late, less than what is
// held or nothing, and removal at any time. They do not know how a lease works,
// only that no token may come from nowhere and none may vanish untold.
type books struct {
	lease local.Lease
	now   int64
	end   int64

	flying bool
	kept   int64
	sent   int64

	given, earned        int64 // put in: by answers, by the rate
	spent, removed, lost int64 // taken out
	unreported, calls    int64
	claims               []claim

	// What the rates were worth, in 10^-9 micro-tokens: at the most, for the time
	// of a message at the lower of the rates before and after it.
	worth       *big.Int
	rate, burst int64
}

// A tape gives the fuzzer's bytes as numbers, and zeros at its end.
type tape []byte

func (t *tape) byte() byte {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return b
}

// upTo is from 0 to most, in all orders of magnitude.
func (t *tape) upTo(most int64) int64 {
	size, a, b := t.byte(), t.byte(), t.byte()
	n := (int64(a)<<8 | int64(b)) << (size % 45) >> 8
	return n % (most + 1)
}

const (
	mostTokens = 9_000_000_000 // about 2^53 micro-tokens
	mostRate   = 1 << 52       // micro-tokens per second
	mostLife   = 27 * second
)

// accrue adds to worth what a rate gives until now, or the end.
func (b *books) accrue(rate, from int64) {
	if to := min(b.now, b.end); to > from {
		b.worth.Add(b.worth, new(big.Int).Mul(big.NewInt(rate), big.NewInt(to-from)))
	}
}

func (b *books) step(t *tape) error {
	l := &b.lease
	switch kind := t.byte() % 14; kind {
	case 0, 1:
		b.advance(t.upTo(mostLife))
	case 2, 3:
		n := t.upTo(20)
		if _, _, ok := l.Take(b.now, n); ok {
			return b.take(n)
		}
	case 4:
		n := t.upTo(mostTokens)
		if l.TakeLate(b.now, n) {
			return b.take(n)
		}
	case 5:
		return b.report()
	case 6, 7:
		if b.flying {
			return b.grant(t)
		}
	case 8:
		l.Shut(t.byte()%2 == 0)
	case 9:
		if t.byte()%2 == 0 {
			l.Quiet()
		} else {
			l.Hurry()
		}
	case 10:
		return b.remove()
	case 11:
		return b.meter(1 + t.upTo(mostTokens/100))
	case 12:
		n := t.upTo(20)
		if l.TakeLateAbove(b.now, n, t.upTo(3)) {
			b.claims = append(b.claims, claim{n, l.Claim(n), true})
			b.calls++
		}
	case 13:
		if len(b.claims) > 0 {
			return b.endClaim(t)
		}
	}
	return nil
}

// advance lets time pass.
func (b *books) advance(d int64) {
	from := b.now
	b.now += d
	if !b.flying {
		b.accrue(b.rate, from)
	}
}

func (b *books) take(n int64) error {
	if n < 1 {
		return fmt.Errorf("%d tokens were taken", n)
	}
	if b.now >= b.end {
		return fmt.Errorf("%d tokens were taken at %d of a lease that ended at %d", n, b.now, b.end)
	}
	b.spent += n
	b.unreported += n
	b.calls++
	return nil
}

// A claim is on tokens that were taken, for which nothing is decided.
type claim struct {
	n     int64
	epoch uint64
	lives bool
}

func (b *books) claimed() (sum int64) {
	for _, c := range b.claims {
		if c.lives {
			sum += c.n
		}
	}
	return sum
}

// void: what was claimed counts as spent.
func (b *books) void() {
	n := b.claimed()
	b.spent += n
	b.unreported += n
	for i := range b.claims {
		b.claims[i].lives = false
	}
}

// endClaim commits or releases any claim, also one that has ended.
func (b *books) endClaim(t *tape) error {
	i := int(t.byte()) % len(b.claims)
	c := b.claims[i]
	b.claims = append(b.claims[:i], b.claims[i+1:]...)
	if t.byte()%2 == 0 {
		b.lease.Commit(c.n, b.now, c.epoch)
		if c.lives {
			b.spent += c.n
			b.unreported += c.n
		}
		return nil
	}
	before := b.lease.Balance(b.now)
	if back := b.lease.Release(c.n, b.now, c.epoch); back != (c.lives && b.now < b.end) {
		return fmt.Errorf("a claim that lives: %v, of a lease that ends at %d, was released at %d: %v", c.lives, b.end, b.now, back)
	} else if !back && c.lives {
		b.claims = append(b.claims, c) // until the lease says so
	} else if back && b.lease.Balance(b.now) != before+c.n {
		return fmt.Errorf("%d came back, the balance went from %d to %d", c.n, before, b.lease.Balance(b.now))
	}
	return nil
}

// told checks what the lease tells to have been spent.
func (b *books) told(what string, spent int64) error {
	if spent != b.unreported {
		return fmt.Errorf("%s tells %d spent, it were %d", what, spent, b.unreported)
	}
	b.unreported = 0
	return nil
}

func (b *books) report() error {
	if b.now >= b.end {
		b.void()
	}
	kept, spent, lost := b.lease.Report(b.now)
	if b.flying || b.now >= b.end {
		b.rate = 0 // the answer is lost, or all is
	}
	b.flying, b.kept, b.sent = true, kept, b.now
	b.lost += lost
	if b.now >= b.end && kept != 0 || b.now < b.end && lost != 0 {
		return fmt.Errorf("kept %d and lost %d at %d, the end is at %d", kept, lost, b.now, b.end)
	}
	if kept < 0 || lost < 0 || !b.lease.Paused() && b.now < b.end {
		return fmt.Errorf("kept %d, lost %d, paused: %v", kept, lost, b.lease.Paused())
	}
	return b.told("Report", spent)
}

// grant is the answer to the last message.
func (b *books) grant(t *tape) error {
	l := &b.lease
	total, rate, burst := b.kept, t.upTo(mostRate), t.upTo(mostTokens*micro)
	switch t.byte() % 4 {
	case 0:
		total += t.upTo(mostTokens)
	case 1:
		total = t.upTo(b.kept)
	case 2:
		total += t.upTo(20)
	}
	total = min(total, mostTokens)
	if rate < micro/2 || burst < micro {
		rate, burst = 0, 0 // the root gives no part that is worth less in a lease
	}
	life := t.upTo(mostLife)
	before := l.Calls()
	earned := b.sum()
	b.end = b.sent + life
	lost := l.Grant(b.kept, total, b.sent+t.upTo(life), b.end, t.upTo(total))
	// What was kept and spent meanwhile is a part of the new total; of that there
	// may be too little.
	meanwhile := b.unreported + b.claimed()
	next := max(0, total-meanwhile)
	b.given += next - (b.kept - meanwhile)
	if lost != max(0, b.kept-meanwhile-next) || b.lease.Calls() != before || b.sum() != earned {
		return fmt.Errorf("of %d kept and %d spent meanwhile a total of %d makes %d lost", b.kept, meanwhile, total, lost)
	}
	if total < b.kept {
		b.void()
	}
	l.Metered(rate, burst, b.sent, b.now)
	b.accrue(min(b.rate, rate), b.sent)
	b.rate, b.burst, b.flying = rate, burst, false
	return nil
}

// sum takes in what was earned.
func (b *books) sum() int64 {
	b.earned += b.lease.Earned()
	return b.earned
}

func (b *books) remove() error {
	held, part, spent, lost := b.lease.Remove(b.now)
	b.void()
	b.removed += held
	b.lost += lost
	ended := b.now >= b.end
	b.end, b.rate, b.flying = 0, 0, false
	if part < 0 || part >= micro || held < 0 || lost < 0 || ended && held+part > 0 || !ended && lost > 0 {
		return fmt.Errorf("Remove: %d and %d held, %d lost, ended: %v", held, part, lost, ended)
	}
	return b.told("Remove", spent)
}

// meter asks when n tokens will be there, and waits for them.
func (b *books) meter(n int64) error {
	d, ok := b.lease.Meter(n, b.now)
	if !ok || b.flying || int64(d) >= b.end-b.now {
		return nil
	}
	if d < 1 {
		return fmt.Errorf("%d tokens are there in %d ns", n, d)
	}
	b.advance(int64(d))
	if !b.lease.TakeLate(b.now, n) {
		return fmt.Errorf("%d tokens are not there after %v", n, d)
	}
	return b.take(n)
}

// check holds the lease against the books.
func (b *books) check() error {
	b.sum()
	held := b.given + b.earned - b.spent - b.removed - b.lost - b.claimed()
	visible := held
	if b.now >= b.end {
		visible = 0
	}
	l := &b.lease
	if got := l.Balance(b.now); held < 0 || got != visible {
		return fmt.Errorf("%d are held and %d are visible; given %d, earned %d, spent %d, removed %d, lost %d",
			held, got, b.given, b.earned, b.spent, b.removed, b.lost)
	}
	if got := l.Calls(); got != b.calls {
		return fmt.Errorf("%d calls are told, it were %d", got, b.calls)
	}
	if part := l.Part(); part < 0 || part >= micro {
		return fmt.Errorf("a part of %d", part)
	}
	most := visible
	if b.now < b.end {
		most += b.claimed()
	}
	if b.now < b.end && l.Rate() > 0 {
		most = max(most, (b.burst+micro-1)/micro)
	}
	if got := l.Rights(b.now); got != most {
		return fmt.Errorf("rights of %d, want %d", got, most)
	}
	if l.Idle() != (held == 0 && b.claimed() == 0 && b.rate == 0) && !b.flying {
		return fmt.Errorf("idle: %v, with %d held and a rate of %d", l.Idle(), held, b.rate)
	}
	earned := new(big.Int).Mul(big.NewInt(b.earned), big.NewInt(micro*second))
	if earned.Cmp(b.worth) > 0 {
		return fmt.Errorf("%d tokens were earned, the rates were worth %v of 10^-15", b.earned, b.worth)
	}
	return nil
}

func keepBooks(data []byte) error {
	b, t := &books{worth: new(big.Int)}, tape(data)
	for step := 0; len(t) > 0; step++ {
		if err := b.step(&t); err != nil {
			return fmt.Errorf("step %d, at %d: %w", step, b.now, err)
		}
		if err := b.check(); err != nil {
			return fmt.Errorf("after step %d, at %d: %w", step, b.now, err)
		}
	}
	return nil
}

func FuzzLeaseConserves(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range many(300, 3000) {
		data := make([]byte, 1+rnd.IntN(400))
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := keepBooks(data); err != nil {
			t.Fatal(err)
		}
	})
}
