package arch

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// A showcase is a package whose symbols have examples.
type showcase struct {
	dir string
	// each function and method is called in an example; otherwise each function, and
	// of each type something: enough where hardly anybody calls it directly.
	each bool
}

var showcases = []showcase{
	{"hybrid", true},
	{"hybrid/httplimit", true},
	{"contrib/grpclimit", true},
	{"contrib/promlimit", true},
	{"contrib/otellimit", true},
	{"local", false},
	{"remote", false},
	{"breaker", false},
	{"lua", false},
}

// Symbols that need no example, and why.
var unshown = map[string]string{
	"hybrid/httplimit.Transport.RoundTrip":      "http.Client calls it",
	"contrib/grpclimit.LimitedError.GRPCStatus": "package status calls it",
}

// Methods that implement an interface of the standard library or mark an event:
// nobody looks for an example of them.
var conventional = []string{"Error", "Is", "Unwrap", "String", "UnmarshalJSON", "When"}

// TestPublicSymbolsHaveExamples: what a user can call is called in an example of its
// package, and each example says what it prints, because it is not run otherwise.
func TestPublicSymbolsHaveExamples(t *testing.T) {
	faults, needed := exampleFaults(showcases, unshown, loaded(t).files)
	report(t, faults)
	for name := range unshown {
		if !slices.Contains(needed, name) {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

func TestSymbolsWithoutExamplesAreFound(t *testing.T) {
	files := []file{
		{"p/p.go", `package p
			func Shown() {}
			func Hidden() {}
			func Excused() {}
			func private() {}
			type T struct{}
			func NewT() T
			func (T) Called()
			func (T) Forgotten()
			func (T) String() string
			type U struct{}
			func (U) M()`},
		{"p/p_test.go", `package p_test
			func TestHidden() { p.Hidden() }
			func ExampleShown() {
				// Output:
			}
			func ExampleNewT() { p.NewT().Called() }`},
	}
	except := map[string]string{"p.Excused": "because"}
	for _, c := range []struct {
		each bool
		want []string
	}{
		{true, []string{
			"p: ExampleNewT has no output, so it is not run", "p.Hidden is in no example of its package",
			"p.T.Forgotten is in no example of its package", "p.U.M is in no example of its package",
		}},
		{false, []string{
			"p: ExampleNewT has no output, so it is not run", "p.Hidden is in no example of its package",
			"p.U is in no example of its package",
		}},
	} {
		got, needed := exampleFaults([]showcase{{"p", c.each}}, except, files)
		if !slices.Equal(got, c.want) || !slices.Equal(needed, []string{"p.Excused"}) {
			t.Errorf("each %v: %q, excused %q", c.each, got, needed)
		}
	}
}

// exampleFaults are the symbols that no example shows, and the examples that print
// nothing. It also says which exceptions it needed.
func exampleFaults(cases []showcase, except map[string]string, files []file) (faults, needed []string) {
	for _, c := range cases {
		p, examples, err := documentation(c.dir, files)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		shown := map[string]bool{} // by name of an example, or by a call in one
		for _, e := range examples {
			if e.Output == "" && !e.EmptyOutput {
				faults = append(faults, fmt.Sprintf("%s: Example%s has no output, so it is not run", c.dir, e.Name))
			}
			shown[strings.ReplaceAll(e.Name, "_", ".")] = true
			shown[strings.Split(e.Name, "_")[0]] = true
			ast.Inspect(e.Code, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					shown[s.Sel.Name] = true
				}
				return true
			})
		}
		for _, symbol := range symbols(p, c.each) {
			name := symbol[strings.LastIndex(symbol, ".")+1:]
			full := c.dir + "." + symbol
			switch {
			case shown[symbol], shown[name]:
			case except[full] != "":
				needed = append(needed, full)
			default:
				faults = append(faults, full+" is in no example of its package")
			}
		}
	}
	return faults, needed
}

// symbols are those of a package that examples should show.
func symbols(p *doc.Package, each bool) (names []string) {
	for _, f := range p.Funcs {
		names = append(names, f.Name)
	}
	for _, t := range p.Types {
		for _, f := range t.Funcs {
			if each {
				names = append(names, f.Name)
			}
		}
		var methods []string
		for _, m := range t.Methods {
			if !slices.Contains(conventional, m.Name) {
				methods = append(methods, t.Name+"."+m.Name)
			}
		}
		switch {
		case each:
			names = append(names, methods...)
		case len(methods) > 0 && len(t.Funcs) > 0:
			names = append(names, t.Funcs[0].Name)
		case len(methods) > 0:
			names = append(names, t.Name)
		}
	}
	return names
}

// documentation is what go doc knows of a package.
func documentation(dir string, files []file) (*doc.Package, []*doc.Example, error) {
	fset := token.NewFileSet()
	var parsed, tests []*ast.File
	for _, f := range files {
		if path.Dir(f.path) != dir || path.Ext(f.path) != ".go" {
			continue
		}
		a, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		parsed = append(parsed, a)
		if strings.HasSuffix(f.path, "_test.go") {
			tests = append(tests, a)
		}
	}
	p, err := doc.NewFromFiles(fset, parsed, modulePath+"/"+dir)
	return p, doc.Examples(tests...), err
}
