# The one build file. `make test` is the test command: it installs what the
# machine lacks and then runs every check that CI runs.

.DEFAULT_GOAL := help
.NOTPARALLEL:

GO ?= go
# The race detector is on by default; `make test RACE=` turns it off.
RACE ?= -race
# The limit of one package's test run.
TIMEOUT ?= 9m
# How long each fuzz function runs in `make fuzz`.
FUZZTIME ?= 10s
# How long `make soak` goes on, in h, m and s.
SOAK ?= 10m
# The foreign systems for which the library must build; 386 finds what breaks
# with a 32-bit int.
CROSS ?= linux/386

BIN := $(CURDIR)/.bin
# The tools are built again when their pins or the Go version change.
TOOLS = $(BIN)/.built-$(shell $(GO) env GOVERSION 2>/dev/null)
# Every module but the tools' own. The comparison with other limiters brings
# hundreds of packages, which would double the time: it is checked by test-full and
# by make check-bench.
ALL = $(shell sh internal/tools/modules.sh)
MODULES = $(if $(LIMITER_FULL),$(LIBRARY),$(filter-out ./bench,$(LIBRARY)))
# The tests of the playground's page need a browser: make test-browser runs them.
BROWSER = ./examples/playground/browsertest
LIBRARY = $(filter-out $(BROWSER),$(ALL))

# A workspace file above this folder must not change the result, and a checkout
# owned by another user must not stop the build of the examples.
export GOWORK := off
export GOFLAGS := $(strip $(filter-out -buildvcs=%,$(shell $(GO) env GOFLAGS 2>/dev/null)) -buildvcs=false)

# each runs a command, with a title, in every module. It goes on after a failure
# and fails in the end if one failed.
define each
@failed=0; for dir in $(MODULES); do \
	echo "== $$dir: $(1)"; \
	(cd $$dir && $(2)) || failed=1; \
done; exit $$failed
endef

.PHONY: help
help: ## print the targets
	@echo "usage: make TARGET"; echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: test
test: ## install what is missing and run every check (what CI runs)
	@if $(MAKE) --no-print-directory check; \
	then echo "make test: PASSED"; \
	else echo "make test: FAILED (the first error is above)"; exit 1; fi

.PHONY: test-full
test-full: ## the same suites with large counts, 32-bit tests and more systems
	@if LIMITER_FULL=1 $(MAKE) --no-print-directory check test-32 \
		TIMEOUT=40m CROSS="linux/386 darwin/arm64 windows/amd64"; \
	then echo "make test-full: PASSED"; \
	else echo "make test-full: FAILED (the first error is above)"; exit 1; fi

# check is the body of test and test-full.
.PHONY: check
check: deps tools mod-check lint cross unit standalone

# These are run without the race detector: it would compile a second time the many
# packages of the other limiters, and a whole SQL database.
NORACE = ./bench ./examples/flashsale

.PHONY: check-bench
check-bench: tools ## check the comparison with other limiters
	@$(MAKE) --no-print-directory MODULES=./bench mod-check vet staticcheck errcheck unit

.PHONY: test-browser
test-browser: tools ## check the playground's page in Chromium, which is installed if missing
	@GO=$(GO) sh internal/tools/need.sh redis-server chromium
	@if $(MAKE) --no-print-directory MODULES=$(BROWSER) RACE= mod-check vet staticcheck errcheck unit-modules; \
	then echo "make test-browser: PASSED"; \
	else echo "make test-browser: FAILED (the first error is above)"; exit 1; fi

.PHONY: screenshot
screenshot: ## write docs/images/playground.png anew
	@cd $(BROWSER) && PLAYGROUND_SCREENSHOT=$(CURDIR)/docs/images/playground.png $(GO) test -count=1 -run='^TestRedisFreezesAndComesBack$$' .

.PHONY: unit
unit: unit-modules ## run the tests of every module
	@echo "== .: go test of scripts and simulations, which have one goroutine and need no race detector"
	@$(GO) test -shuffle=on -count=1 -timeout=$(TIMEOUT) $(SINGLE)
	@echo "== .: go test of figures under load"
	@$(GO) test -shuffle=on -count=1 -timeout=$(TIMEOUT) -run='$(LOAD)' ./hybrid

# These measure what comes of a load, on fake time: the race detector would only make
# them slow, and finds what it can in the other tests of the same code.
LOAD = ^Test(OutageOfAFleetKeepsTheTotal|FleetUsesTheLimit|OverloadUsesUpTheLimit|OutagesThatComeAndGoAddNothing|MemoryUnderAFloodOfKeys|PicturesOfTheAlgorithms|ClientsThatBackOffUseTheLimit|ReservationsKeepTheBoundWhenTheyFallDue|AllAlgorithmsKeepTheirBound|RetryAfterIsRight|ReservationsConserveTokens)$$
SINGLE = ./internal/sim ./internal/luahost ./lua ./examples/simulate

.PHONY: unit-modules
unit-modules:
	$(call each,go test,$(GO) test $$(echo " $(NORACE) " | grep -q " $$dir " || echo $(RACE)) -shuffle=on -count=1 -timeout=$(TIMEOUT) -skip='$(LOAD)' $$(sh $(CURDIR)/internal/tools/packages.sh $(SINGLE)))

# Only some Linux machines run a 32-bit program, so it is tried first. There is
# no race detector for it.
TEST32 = GOOS=linux GOARCH=386 CGO_ENABLED=0 $(GO) test -count=1 -timeout=$(TIMEOUT)

.PHONY: test-32
test-32: ## run the library's tests as a 32-bit program, where one runs
	@echo "== .: go test for linux/386"
	@if $(TEST32) -run='^$$' ./internal/arch >/dev/null 2>&1; \
	then $(TEST32) -shuffle=on ./...; \
	else echo "this machine runs no 32-bit programs; see 'make cross' for the build"; fi

.PHONY: standalone
standalone: ## build the nested modules as their users get them, without replace
	@echo "== internal/tools: go test ./standalone"
	@cd internal/tools && $(GO) vet ./standalone && $(GO) test -count=1 -timeout=30m ./standalone

.PHONY: lint
lint: fmt-check vet staticcheck errcheck ## check the format and run the linters

.PHONY: fmt
fmt: tools ## write every Go file in gofumpt's format
	@$(BIN)/gofumpt -w .

.PHONY: fmt-check
fmt-check: tools
	@echo "== gofumpt -l ."
	@bad=$$($(BIN)/gofumpt -l .) || exit 1; if [ -n "$$bad" ]; then \
		echo "not in gofumpt's format (run: make fmt):"; echo "$$bad"; exit 1; fi

.PHONY: vet
vet:
	$(call each,go vet,$(GO) vet ./...)

.PHONY: staticcheck
staticcheck: tools
	$(call each,staticcheck,$(BIN)/staticcheck ./...)

.PHONY: errcheck
errcheck: tools
	$(call each,errcheck,$(BIN)/errcheck -exclude $(CURDIR)/internal/tools/errcheck.txt ./...)

.PHONY: cross
cross: ## check that the library builds on other systems
	@failed=0; for target in $(CROSS); do \
		echo "== .: go vet for $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 $(GO) vet ./... || failed=1; \
	done; exit $$failed

.PHONY: mod-check
mod-check: ## check that go.mod and go.sum are right and tidy
	$(call each,go mod verify,$(GO) mod verify)
	$(call each,go mod tidy -diff,$(GO) mod tidy -diff)

.PHONY: deps
deps: ## install a Redis server, a C compiler and promtool if they are missing
	@GO=$(GO) sh internal/tools/need.sh redis-server promtool $(if $(RACE),cc)

.PHONY: redis
redis: ## install a Redis server if it is missing
	@GO=$(GO) sh internal/tools/need.sh redis-server

.PHONY: tools
tools: $(TOOLS) ## build the pinned lint tools into .bin/

$(TOOLS): internal/tools/go.mod internal/tools/go.sum
	@echo "== building the lint tools into .bin/"
	@mkdir -p $(BIN) && rm -f $(BIN)/.built-*
	@cd internal/tools && GOBIN=$(BIN) CGO_ENABLED=0 $(GO) install tool
	@touch $@

.PHONY: fuzz
fuzz: ## run each fuzz function for FUZZTIME (default 10s)
	@GO=$(GO) sh internal/tools/fuzz.sh $(FUZZTIME) $(MODULES)

# Each round is a new storm of processes and some new schedules. The first failure
# ends it; it has printed the seed to repeat.
SOAK_SECONDS = $$(( $$(echo $(SOAK) | sed 's/h/*3600+/; s/m/*60+/; s/s/+/; s/+*$$//') ))

.PHONY: soak
soak: deps ## run random storms and schedules for SOAK (default 10m)
	@end=$$(( $$(date +%s) + $(SOAK_SECONDS) )); round=0; \
	while [ $$(date +%s) -lt $$end ]; do \
		round=$$((round + 1)); echo "== soak: round $$round"; \
		$(GO) test $(RACE) -count=1 -timeout=$(TIMEOUT) -v -run='^TestStorm$$' ./internal/e2e && \
		$(GO) test $(RACE) -count=1 -timeout=$(TIMEOUT) -v -run='^TestSchedules$$' ./internal/sim || exit 1; \
	done; echo "make soak: $$round rounds PASSED"

.PHONY: cover
cover: ## measure the library's test coverage into coverage.out
	@$(GO) test -covermode=atomic -coverpkg=./... -coverprofile=coverage.out -timeout=$(TIMEOUT) ./...
	@$(GO) tool cover -func=coverage.out | tail -n 1
	@echo "see it: go tool cover -html=coverage.out"

# BENCHFLAGS are for bench/main.go: -duration 1s -rounds 3 -only A,B.
.PHONY: bench
bench: redis ## compare with other limiters and write docs/benchmarks.md (8 minutes)
	@cd bench && $(GO) run . -out ../docs/benchmarks.md $(BENCHFLAGS)

.PHONY: bench-compare
bench-compare: redis tools ## run the Go benchmarks at BASE and here, and compare them
	@test -n "$(BASE)" || { echo "usage: make bench-compare BASE=<revision>"; exit 2; }
	@GO=$(GO) sh bench/compare.sh $(BIN)/benchstat $(BASE)

.PHONY: clean
clean: ## remove the built tools and the coverage file
	@rm -rf $(BIN) coverage.out
