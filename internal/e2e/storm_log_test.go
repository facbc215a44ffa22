package e2e

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/resilient-go/limiter/hybrid"
)

// A record is one decision as a worker in a storm writes it down: with one write
// to the file as soon as it is known, before the caller goes on. What was written
// outlives the worker however it dies, and what was not was never made use of.
type record struct {
	Start, End int64
	N          int32
	Front, Key uint8
	Allowed    bool
	Source     hybrid.Source
}

var recordSize = binary.Size(record{})

// A storyBook is the file of one worker. Its errors are in a file beside it.
type storyBook struct{ decisions, errors *os.File }

const (
	decisionsFile = ".decisions"
	errorsFile    = ".errors"
)

func newStoryBook(path string) (*storyBook, error) {
	const append = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	d, err := os.OpenFile(path+decisionsFile, append, 0o600)
	if err != nil {
		return nil, err
	}
	e, err := os.OpenFile(path+errorsFile, append, 0o600)
	return &storyBook{d, e}, err
}

// decision writes a record down. A book that cannot be written is no proof of
// anything, so the worker ends.
func (b *storyBook) decision(r record) {
	text := make([]byte, 0, recordSize)
	text, err := binary.Append(text, binary.LittleEndian, r)
	if err == nil {
		_, err = b.decisions.Write(text)
	}
	if err != nil {
		panic(err)
	}
}

func (b *storyBook) fault(err error) {
	if _, err := b.errors.WriteString(err.Error() + "\n"); err != nil {
		panic(err)
	}
}

// readStory returns what a worker wrote, dead or alive. Of a record that its
// death cut short nobody had heard.
func readStory(t *testing.T, path string) (records []record, errors string) {
	t.Helper()
	text, err := os.ReadFile(path + decisionsFile)
	if err != nil {
		t.Fatal(err)
	}
	records = make([]record, len(text)/recordSize)
	if err := binary.Read(bytes.NewReader(text), binary.LittleEndian, records); err != nil {
		t.Fatal(err)
	}
	told, err := os.ReadFile(path + errorsFile)
	if err != nil {
		t.Fatal(err)
	}
	return records, string(told)
}

// call is the record as the judge of windows wants it.
func (r record) call() Call {
	return Call{Start: r.Start, End: r.End, N: int(r.N), Allowed: r.Allowed, Source: r.Source}
}

func TestStoryIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worker")
	b, err := newStoryBook(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []record{
		{Start: 1, End: 1 << 60, N: 1 << 30, Front: 2, Key: 255, Allowed: true, Source: hybrid.SourceLease},
		{Start: -1, End: -2, N: 3, Front: 4, Key: 5, Source: hybrid.SourceDegraded},
	}
	for _, r := range want {
		b.decision(r)
	}
	b.fault(os.ErrClosed)
	if _, err := b.decisions.Write(make([]byte, recordSize-1)); err != nil { // cut short
		t.Fatal(err)
	}
	got, told := readStory(t, path)
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] || told != "file already closed\n" {
		t.Errorf("read %+v and %q, want %+v", got, told, want)
	}
	for _, f := range []*os.File{b.decisions, b.errors} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
