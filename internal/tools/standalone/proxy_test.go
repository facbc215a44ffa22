package standalone

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// A proxy is a folder that the go command reads modules from.
type proxy struct{ dir string }

func newProxy(t *testing.T) proxy {
	t.Helper()
	return proxy{t.TempDir()}
}

// add serves the module of a folder under a version.
func (p proxy) add(t *testing.T, m module.Version, from string) {
	t.Helper()
	path, err := module.EscapePath(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(p.dir, filepath.FromSlash(path), "@v")
	name := filepath.Join(at, m.Version)
	if _, err := os.Stat(name + ".zip"); err == nil {
		return // another module has asked for it
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{".mod": string(text), ".info": `{"Version":"` + m.Version + `"}`} {
		if err := os.WriteFile(name+file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pack(t, name+".zip", m, from)
}

// env has the go command use the proxy for what it serves, what this machine has
// downloaded before for the rest, and the proxy that is set for what is missing.
func (p proxy) env(t *testing.T) []string {
	t.Helper()
	have := filepath.Join(output(t, ".", nil, "go", "env", "GOMODCACHE"), "cache", "download")
	return []string{
		"GOPROXY=file://" + filepath.ToSlash(p.dir) + ",file://" + filepath.ToSlash(have) + "," + output(t, ".", nil, "go", "env", "GOPROXY"),
		"GONOSUMDB=github.com/resilient-go/limiter", "GONOPROXY=none", "GOPRIVATE=",
		// Without -trimpath all would be compiled again in each new cache.
		"GOFLAGS=-mod=mod -trimpath -modcacherw", "GOWORK=off", "GOTOOLCHAIN=local",
	}
}

// pack makes the zip of a module: all files but those of hidden folders, which are
// of no use to a build, and of the modules below.
func pack(t *testing.T, name string, m module.Version, root string) {
	t.Helper()
	var files []zip.File
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		below, err := filepath.Rel(root, path)
		files = append(files, packed{path, filepath.ToSlash(below)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.Create(out, m, files); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// A packed file is one of a zip.
type packed struct{ from, path string }

func (f packed) Path() string                 { return f.path }
func (f packed) Lstat() (fs.FileInfo, error)  { return os.Lstat(f.from) }
func (f packed) Open() (io.ReadCloser, error) { return os.Open(f.from) }
