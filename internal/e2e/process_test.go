package e2e

import (
	"bytes"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A process is a worker and the line to it.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	line   *rpc.Client
	stderr bytes.Buffer
	killed bool
	halted bool
}

// pipes are a process's ends of the line.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return p.WriteCloser.Close() } // the worker hangs up in turn

// startProcess starts a worker, which ends with the test.
func startProcess(t *testing.T) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), workerEnv+"=1",
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE")) // or each takes a second to end
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.line = rpc.NewClient(pipes{out, in})
	t.Cleanup(p.end)
	p.checkClock()
	return p
}

// end hangs up and waits. A worker that ends badly, for instance because of a
// data race, fails the test.
func (p *process) end() {
	if p.killed {
		return
	}
	if p.halted { // the test failed: a process that stands still does not end
		p.kill()
		return
	}
	p.checkClock()
	_ = p.line.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the worker ended with %v and said:\n%s", err, &p.stderr)
	}
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // says that it was killed
	_ = p.line.Close()
}

// signal sends STOP or CONT, by a command because package syscall does not know
// these signals everywhere.
func (p *process) signal(name string) {
	p.t.Helper()
	p.halted = name == "STOP"
	if out, err := exec.Command("kill", "-"+name, strconv.Itoa(p.cmd.Process.Pid)).CombinedOutput(); err != nil {
		p.t.Fatalf("kill -%s: %v: %s", name, err, out)
	}
}

// checkClock fails the test if the worker's clock is not this process's: the
// wall clock was set between the starts of the two.
func (p *process) checkClock() {
	p.t.Helper()
	before := stamp()
	now := order[int64](p, "Clock", Nothing{})
	if after := stamp(); now < before || now > after {
		p.t.Errorf("the worker's clock shows %d between %d and %d on this one", now, before, after)
	}
}

// order gives an order and returns the answer.
func order[A any](p *process, method string, args any) (answer A) {
	p.t.Helper()
	if !strings.Contains(method, ".") {
		method = "Worker." + method
	}
	if err := p.line.Call(method, args, &answer); err != nil {
		p.t.Errorf("%s: %v", method, err)
	}
	return answer
}

// together gives orders to all processes at once and returns all answers.
func together(ps []*process, give func(i int, p *process) []Call) (calls []Call) {
	var (
		answers = make([][]Call, len(ps))
		work    sync.WaitGroup
	)
	for i, p := range ps {
		work.Go(func() { answers[i] = give(i, p) })
	}
	work.Wait()
	for _, a := range answers {
		calls = append(calls, a...)
	}
	return calls
}
