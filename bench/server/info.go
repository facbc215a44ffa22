package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Info is a section of INFO.
func (s *Server) Info(section string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	return parseInfo(text), nil
}

func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Usage is what clients have made the server do.
type Usage struct {
	// Commands are all that ran, those that scripts called included. Scripts are the
	// EVAL and EVALSHA among them, and ScriptTime is how long these took.
	Commands, Scripts int
	ScriptTime        time.Duration
	// CPU is the processor time of the server, which others on the machine do not
	// lengthen as they do ScriptTime.
	CPU time.Duration
}

// Sub is the usage since an earlier one.
func (u Usage) Sub(o Usage) Usage {
	return Usage{u.Commands - o.Commands, u.Scripts - o.Scripts, u.ScriptTime - o.ScriptTime, u.CPU - o.CPU}
}

// own are the commands of this program, and of clients that connect.
var own = map[string]bool{
	"info": true, "config": true, "flushall": true, "dbsize": true, "hello": true, "client": true, "ping": true,
	"command": true, "auth": true, "randomkey": true, "memory": true, "select": true, "script": true,
}

// Usage reads the counters.
func (s *Server) Usage() (Usage, error) {
	info, err := s.Info("commandstats")
	if err != nil {
		return Usage{}, err
	}
	u, err := usage(info)
	if err != nil {
		return Usage{}, err
	}
	if info, err = s.Info("cpu"); err != nil {
		return Usage{}, err
	}
	u.CPU, err = processor(info)
	return u, err
}

// processor adds up user and system time.
func processor(info map[string]string) (time.Duration, error) {
	var sum float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		x, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += x
	}
	return time.Duration(sum * float64(time.Second)), nil
}

// usage adds up the lines of commandstats, such as
// cmdstat_client|setinfo:calls=2,usec=4,usec_per_call=2.00.
func usage(info map[string]string) (u Usage, err error) {
	for field, value := range info {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if name, _, _ = strings.Cut(name, "|"); !ok || own[name] {
			continue
		}
		var calls, usec int
		if _, err := fmt.Sscanf(value, "calls=%d,usec=%d,", &calls, &usec); err != nil {
			return Usage{}, fmt.Errorf("commandstats of %s: %w", name, err)
		}
		u.Commands += calls
		if strings.HasPrefix(name, "eval") {
			u.Scripts += calls
			u.ScriptTime += time.Duration(usec) * time.Microsecond
		}
	}
	return u, nil
}

// Memory is what the server's data takes, in bytes, and the number of keys.
func (s *Server) Memory() (used, keys int, err error) {
	info, err := s.Info("memory")
	if err != nil {
		return 0, 0, err
	}
	if used, err = strconv.Atoi(info["used_memory"]); err != nil {
		return 0, 0, fmt.Errorf("used_memory: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	n, err := s.admin.DBSize(ctx).Result()
	return used, int(n), err
}

// KeyMemory is what one of the keys takes, as MEMORY USAGE tells.
func (s *Server) KeyMemory() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	key, err := s.admin.RandomKey(ctx).Result()
	if err != nil {
		return 0, err
	}
	n, err := s.admin.MemoryUsage(ctx, key, 0).Result()
	return int(n), err
}

// Flush empties the server.
func (s *Server) Flush() error { return s.Do("FLUSHALL", "SYNC") }
