package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// A machine is where and with what the figures were made.
type machine struct {
	cpu, system, goVersion, redis string
	cores                         int
	modules                       map[string]string
}

func thisMachine(redis string) machine {
	m := machine{
		cpu: "unknown", system: runtime.GOOS + "/" + runtime.GOARCH, goVersion: runtime.Version(),
		redis: redis, cores: runtime.GOMAXPROCS(0), modules: map[string]string{},
	}
	for line := range strings.Lines(text("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.cpu = strings.TrimSpace(value)
			break
		}
	}
	if release := strings.TrimSpace(text("/proc/sys/kernel/osrelease")); release != "" {
		release, _, _ = strings.Cut(release, "-")
		m.system += ", kernel " + release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			m.modules[d.Path] = d.Version
			if d.Replace != nil {
				m.modules[d.Path] = "this checkout"
			}
		}
	}
	return m
}

// version is that of a module in this program; none of none.
func (m machine) version(module string) string {
	if module == "" {
		return ""
	}
	if v := m.modules[module]; v != "" {
		return short(module) + " " + v
	}
	return short(module)
}

// short is the last part of a module's path that is a name.
func short(module string) string {
	parts := strings.Split(module, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = parts[len(parts)-2]
	}
	return last
}

// loadNow is the machine's load average, as the system tells it.
func loadNow() string {
	f := strings.Fields(text("/proc/loadavg"))
	if len(f) < 3 {
		return "unknown"
	}
	return strings.Join(f[:3], ", ")
}

// busy reports whether others had work for half of the cores or more.
func (m machine) busy(load string) bool {
	first, _, _ := strings.Cut(load, ",")
	x, err := strconv.ParseFloat(first, 64)
	return err == nil && x >= float64(m.cores)/2
}

func text(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "" // another system
	}
	return string(b)
}
