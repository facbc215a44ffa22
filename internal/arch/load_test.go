package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A repository is what the rules are applied to.
type repository struct {
	graph   graph
	files   []file            // Go and Lua
	modules map[string]string // module paths by folder
	direct  []string          // direct requirements of the root module
}

// load reads the repository once for all tests.
var load = sync.OnceValues(func() (repository, error) { return read(filepath.Join("..", "..")) })

// loaded returns the repository or ends the test.
func loaded(t *testing.T) repository {
	t.Helper()
	r, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read reads the repository in a folder. Its own packages are read from their
// files, so that those of other systems and build tags are seen too; the
// packages that they reach come from the go command.
func read(root string) (repository, error) {
	r := repository{graph: graph{}, modules: map[string]string{}}
	if err := r.walk(os.DirFS(root)); err != nil {
		return r, err
	}
	for _, f := range r.files {
		if err := r.addFile(f); err != nil {
			return r, err
		}
	}
	for dir := range r.modules {
		if err := r.addReached(filepath.Join(root, filepath.FromSlash(dir))); err != nil {
			return r, err
		}
	}
	return r, r.readDirect(root)
}

// walk collects the files and the modules. The lint tools' module, test data and
// hidden folders are no part of the library.
func (r *repository) walk(tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && strings.HasPrefix(base, ".") || base == "testdata" || base == "vendor" ||
				name == "internal/tools" {
				return fs.SkipDir
			}
			return nil
		}
		if ext := path.Ext(name); ext != ".go" && ext != ".lua" && base != "go.mod" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if base == "go.mod" {
			r.modules[path.Dir(name)] = moduleName(string(text))
			return nil
		}
		r.files = append(r.files, file{name, string(text)})
		return nil
	})
}

// moduleName is the path in a go.mod's module line.
func moduleName(text string) string {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "module" {
			return f[1]
		}
	}
	return ""
}

// addFile adds one Go file's imports to its package.
func (r *repository) addFile(f file) error {
	if path.Ext(f.path) != ".go" {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	importPath := modulePath
	if dir := path.Dir(f.path); dir != "." {
		importPath += "/" + dir
	}
	p := r.graph[importPath]
	list := &p.imports
	if strings.HasSuffix(f.path, "_test.go") {
		list = &p.testImports
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if !slices.Contains(*list, imported) {
			*list = append(*list, imported)
		}
	}
	r.graph[importPath] = p
	return nil
}

// addReached adds the packages of others that a module reaches.
func (r *repository) addReached(dir string) error {
	out, err := goCommand(dir, "list", "-buildvcs=false", "-deps", "-json=ImportPath,Imports,ImportMap", "./...")
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath string
			Imports    []string
			ImportMap  map[string]string
		}
		if err := dec.Decode(&listed); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if isOwn(listed.ImportPath) {
			continue
		}
		for i, imported := range listed.Imports {
			if mapped, ok := listed.ImportMap[imported]; ok {
				listed.Imports[i] = mapped
			}
		}
		r.graph[listed.ImportPath] = pkg{imports: listed.Imports}
	}
}

// readDirect reads the direct requirements of the root module.
func (r *repository) readDirect(root string) error {
	out, err := goCommand(root, "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return err
	}
	for _, req := range mod.Require {
		if !req.Indirect {
			r.direct = append(r.direct, req.Path)
		}
	}
	return nil
}

// goCommand runs the go command in a folder and returns its output.
func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.Bytes())
	}
	return out, nil
}
