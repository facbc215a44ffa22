package main

import (
	"fmt"
	"io"
	"time"

	"github.com/resilient-go/limiter/bench/peers"
	"github.com/resilient-go/limiter/bench/server"
)

// A bench is one run of the scenarios.
type bench struct {
	redis    *server.Server
	peers    []peers.Peer
	duration time.Duration
	rounds   int
	progress io.Writer

	names int
	// rows has the samples of each round, by scenario, case and peer.
	rows map[row][]sample
}

// A row is one of a table: what was measured, of whom.
type row struct{ scenario, load, peer string }

// name makes a new prefix, so that no limiter meets the state of another.
func (b *bench) name() string {
	b.names++
	return fmt.Sprintf("bench%d:", b.names)
}

// put keeps a sample.
func (b *bench) put(scenario, load string, p peers.Peer, s sample) {
	r := row{scenario, load, p.Name}
	b.rows[r] = append(b.rows[r], s)
}

// turn is the order of the peers in a round: each round begins with another one, so
// that none is always the first after a pause.
func (b *bench) turn(scenario string, round int) []peers.Peer {
	var in []peers.Peer
	for i := range b.peers {
		p := b.peers[(i+round)%len(b.peers)]
		if p.Out[scenario] == "" {
			in = append(in, p)
		}
	}
	return in
}

// A scenario is a letter of the document.
type scenario struct {
	letter, title, about string
	// cases are its loads, each a table.
	cases   []string
	columns []column
	// run does a round of it.
	run func(b *bench, round int) error
}

// run does all rounds of some scenarios.
func (b *bench) run(todo []scenario) error {
	begun := time.Now()
	for round := range b.rounds {
		for _, s := range todo {
			if err := s.run(b, round); err != nil {
				return fmt.Errorf("scenario %s: %w", s.letter, err)
			}
			if _, err := fmt.Fprintf(b.progress, "round %d of %d, %s done, %v\n",
				round+1, b.rounds, s.letter, time.Since(begun).Round(time.Second)); err != nil {
				return err
			}
		}
	}
	return nil
}
