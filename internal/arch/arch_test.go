package arch

import "testing"

// report fails a test with each fault.
func report(t *testing.T, faults []string) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}

// A repository that was not found has no faults either.
func TestRepositoryIsRead(t *testing.T) {
	r := loaded(t)
	if _, ok := r.graph[modulePath+"/internal/arch"]; !ok {
		t.Error("the graph lacks this package")
	}
	if r.modules["."] != modulePath {
		t.Errorf("the root module is %q", r.modules["."])
	}
	if len(r.files) == 0 {
		t.Error("no files were read")
	}
}

func TestTables(t *testing.T) {
	report(t, tableFaults(floors, libraries))
}

func TestModules(t *testing.T) {
	report(t, moduleFaults(loaded(t).modules))
}

func TestFloors(t *testing.T) {
	report(t, floorFaults(floors, loaded(t).graph))
}

func TestRequirements(t *testing.T) {
	r := loaded(t)
	missing := missingRows(floors, r.graph)
	if len(missing) > 0 {
		t.Logf("not written yet: %v", missing)
	}
	report(t, requirementFaults(libraries, r.direct, len(missing) == 0))
}

func TestLibraryOwners(t *testing.T) {
	report(t, ownerFaults(floors, libraries, loaded(t).graph))
}

func TestProductionReach(t *testing.T) {
	report(t, reachFaults(floors, bans, loaded(t).graph))
}

func TestHygiene(t *testing.T) {
	report(t, hygieneFaults(floors, luaPreludes, exceptions, loaded(t).files))
}
