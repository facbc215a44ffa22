package standalone

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestNestedModulesBuildWithoutReplace builds and vets each one as it is after a
// release: unpacked from its own zip, with the other modules of the repository from
// a proxy and not from the folder next door.
func TestNestedModulesBuildWithoutReplace(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	served := newProxy(t)
	cache := t.TempDir()
	dirs := strings.Fields(output(t, root, nil, "sh", "internal/tools/modules.sh"))
	if len(dirs) < 2 {
		t.Fatalf("no nested module among %v", dirs)
	}
	for _, dir := range dirs {
		if dir == "." || dir == "./bench" || strings.HasPrefix(dir, "./examples/") { // only ever run from a checkout
			continue
		}
		t.Run(strings.TrimPrefix(dir, "./"), func(t *testing.T) {
			from := filepath.Join(root, dir)
			mod := readMod(t, from)
			self := module.Version{Path: mod.Module.Path, Version: "v0.0.0"}
			packed := filepath.Join(t.TempDir(), "module.zip")
			pack(t, packed, self, from)
			here := filepath.Join(t.TempDir(), "module")
			if err := zip.Unzip(here, self, packed); err != nil {
				t.Fatal(err)
			}
			for _, r := range mod.Replace {
				served.add(t, module.Version{Path: r.Old.Path, Version: mod.version(t, r.Old.Path)}, filepath.Join(from, r.New.Path))
				output(t, here, nil, "go", "mod", "edit", "-dropreplace="+r.Old.Path)
			}
			env := append(served.env(t), "GOMODCACHE="+cache)
			output(t, here, env, "go", "build", "./...")
			for _, r := range mod.Replace {
				// The proof that it is not the folder next door that is built.
				if at := output(t, here, env, "go", "list", "-m", "-f={{.Dir}}", r.Old.Path); !strings.HasPrefix(at, cache) {
					t.Errorf("%s comes from %s", r.Old.Path, at)
				}
			}
			output(t, here, env, "go", "vet", "./...")
		})
	}
}

// A modFile is what is of interest in a go.mod.
type modFile struct {
	Module  struct{ Path string }
	Require []struct{ Path, Version string }
	Replace []struct{ Old, New struct{ Path string } }
}

func readMod(t *testing.T, dir string) (m modFile) {
	t.Helper()
	if err := json.Unmarshal([]byte(output(t, dir, nil, "go", "mod", "edit", "-json")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// version is the required version of a module.
func (m modFile) version(t *testing.T, path string) string {
	t.Helper()
	for _, r := range m.Require {
		if r.Path == path {
			return r.Version
		}
	}
	t.Fatalf("%s replaces %s and does not require it", m.Module.Path, path)
	return ""
}

// output runs a command in a folder and returns what it prints, without the end of
// the line.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v in %s: %v\n%s%s", cmd.Args, dir, err, out, failure.String())
	}
	return strings.TrimSpace(string(out))
}
