package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/resilient-go/limiter/bench/load"
	"github.com/resilient-go/limiter/bench/peers"
)

// A document is docs/benchmarks.md.
type document struct {
	b       *bench
	todo    []scenario
	command string
	date    time.Time
	took    time.Duration
	machine machine
	loads   [2]string // of the machine, before and after
}

func (d *document) String() string {
	var out strings.Builder
	d.head(&out)
	for _, s := range d.todo {
		fmt.Fprintf(&out, "\n## %s: %s\n\n%s\n", s.letter, s.title, wrap(s.about))
		for _, c := range s.cases {
			fmt.Fprintf(&out, "\n**%s**\n\n%s", c, d.table(s, c))
		}
		if s.letter == hot.letter || s.letter == many.letter {
			fmt.Fprintf(&out, "\nDecisions per second with %s, on a scale of powers of ten:\n\n```text\n%s```\n", callers(8), d.chart(s.letter, callers(8)))
		}
	}
	d.foot(&out)
	return out.String()
}

func (d *document) head(out *strings.Builder) {
	fmt.Fprintf(out, "# Benchmarks\n\n%s\n\n", wrap("This library beside what one might use instead, each through its public API and with "+
		"default options (the Redis client of this library has those of hybrid.RedisOptions), in one run against one Redis. Written by `make bench`; do not edit."))
	fmt.Fprintf(out, "%s\n\n", d.warning())
	fmt.Fprint(out, list([]string{"what", "which"}, [][]string{
		{"command", "`" + d.command + "`"},
		{"date", d.date.UTC().Format("2006-01-02 15:04 MST") + ", took " + d.took.Round(time.Second).String()},
		{"processor", d.machine.cpu},
		{"cores", fmt.Sprint(d.machine.cores)},
		{"system", d.machine.system},
		{"Go", d.machine.goVersion},
		{"Redis", d.machine.redis + ", on the same machine, without persistence"},
		{"load average (1, 5, 15 min)", d.loads[0] + " before, " + d.loads[1] + " after"},
	}))
	fmt.Fprintf(out, "\n%s\n", wrap(fmt.Sprintf("Clients, proxy and Redis share the cores. Each figure is the median of %d rounds; in a round the limiters "+
		"take turns, each measured for %v, and each round begins with another one. Machines differ: compare rows of one table, not tables of "+
		"two machines.", d.b.rounds, d.b.duration)))
	rows := [][]string{}
	for _, p := range d.b.peers {
		rows = append(rows, []string{p.Name, d.machine.version(p.Module), d.machine.version(p.Client), string(p.Way), p.Counts})
	}
	fmt.Fprintf(out, "\n%s", list([]string{"limiter", "version", "Redis client", "decides", "how"}, rows))
	fmt.Fprintf(out, "\nNot here:\n\n")
	for _, a := range peers.Absent() {
		fmt.Fprintf(out, "- %s\n", hang(a[0]+": "+a[1]))
	}
}

// warning is what a reader must know before a figure.
func (d *document) warning() string {
	busy := "The machine was quiet before the run."
	if d.machine.busy(d.loads[0]) {
		busy = "**The machine was busy with other work**: the figures are worse than they should be, most of all the long latencies."
	}
	if d.b.rounds < 3 || d.b.duration < 500*time.Millisecond {
		busy += " **The run was short**, to see that all works: the figures say little."
	}
	return wrap(busy)
}

// table has a row for each peer, also for those that have no part in it.
func (d *document) table(s scenario, load string) string {
	head := []string{"limiter"}
	for _, c := range s.columns {
		head = append(head, c.name)
	}
	if s.columns[0].name == perSecond {
		head = append(head, "spread")
	}
	var rows [][]string
	for _, p := range d.b.peers {
		cells := []string{p.Name}
		samples := d.b.rows[row{s.letter, load, p.Name}]
		if why := p.Out[s.letter]; why != "" || len(samples) == 0 {
			cells = append(cells, "("+why+")")
			for len(cells) < len(head) {
				cells = append(cells, "")
			}
			rows = append(rows, cells)
			continue
		}
		m := medians(samples)
		for _, c := range s.columns {
			cells = append(cells, c.show(m[c.name]))
		}
		if s.columns[0].name == perSecond {
			cells = append(cells, spread(samples))
		}
		rows = append(rows, cells)
	}
	return table(head, rows)
}

// spread is how far the rounds are from each other, as parts of their median.
func spread(samples []sample) string {
	var xs []float64
	for _, s := range samples {
		xs = append(xs, s[perSecond])
	}
	m := load.Median(xs)
	if m == 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f…%+.0f %%", 100*(slices.Min(xs)/m-1), 100*(slices.Max(xs)/m-1))
}

func (d *document) chart(letter, load string) string {
	var names []string
	var values []float64
	for _, p := range d.b.peers {
		if samples := d.b.rows[row{letter, load, p.Name}]; len(samples) > 0 {
			names = append(names, p.Name)
			values = append(values, medians(samples)[perSecond])
		}
	}
	return chart(names, values, count)
}

const columnsText = `
- **decisions/s**, **ns/op**: decisions of all goroutines by the time that passed, admissions and refusals alike.
  **spread** is the slowest and the fastest round, against the median.
- **p50, p99, p99.9**: how long a caller waited, from before the call to after it, so that one reading of the clock
  is in it. Of limiters that ask Redis all calls are timed, of the others one in 64.
- **allocs/op**: all allocations of the process (runtime.MemStats) by decisions.
- **commands**, **scripts**: what Redis ran by decisions, from INFO commandstats before and after: all commands, those
  inside of scripts included; and EVAL and EVALSHA alone. A limiter that uses one script sends one command per script.
- **CPU**: user and system time of the client process (getrusage) by decisions. **Redis CPU**: that of the server
  (INFO cpu), likewise.
- **heap**: what the limiter and its client keep (runtime.MemStats after a collection, against before).
- **admitted**: the part of the decisions that were admissions. **degraded**: the part that the outage policy made,
  because Redis was not reached in time. This library tells that; of the others it is not known.
- **used**: what was admitted by what the limit allows: in C rate × time + burst (late answers do not count), in D
  rate × the length of the outage.
- **excess**: the worst of all windows, of whatever length: what was admitted in it, less what the rate is worth in
  it, in bursts. A token bucket keeps to 1.00. A window of one second has no burst of its own and promises no such thing.
  An admission counts when its caller has it: on a busy machine answers bunch, and exact limiters seem to exceed 1.00.
- **calls**: how many there were. **errors**: calls that got one, and so no decision. **late**: calls without an answer
  within 100 ms. **max**: the longest call.
- **Redis bytes/key**: used_memory before and after, by keys asked for; **Redis keys/key**: DBSIZE likewise.
`

func (d *document) foot(out *strings.Builder) {
	fmt.Fprintf(out, "\n## The columns\n%s", columnsText)
}

// wrap breaks lines at 118 characters.
func wrap(text string) string {
	var b strings.Builder
	n := 0
	for i, word := range strings.Fields(text) {
		w := len([]rune(word))
		switch {
		case i == 0:
		case n+1+w > 118:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += w
	}
	return b.String()
}

// hang is wrap for an item of a list.
func hang(text string) string { return strings.ReplaceAll(wrap(text), "\n", "\n  ") }
