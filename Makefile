# Everything one does with this repository. Go and make are enough, nothing needs root,
# and nothing but Go modules is downloaded, except by test-wine. `make` alone lists the
# targets.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# Flags of the emulated node that 'make run' serves.
ARGS      ?= -preset busy
BENCHTIME ?= 1s
FUZZTIME  ?= 20s

# The programs in cmd: those for Windows nodes, and those that also run here.
WINDOWS_PROGRAMS := csi-proxy csi-proxyctl csi-proxy-sim
NATIVE_PROGRAMS  := csi-proxyctl csi-proxy-sim

# VERSION says more than the stamp of the go command, which fails in a foreign checkout.
LDFLAGS    := -s -w -X github.com/kubernetes-csi/csi-proxy/v2/internal/version.stamped=$(VERSION)
# Without grpcnotrace gRPC links golang.org/x/net/trace, whose templates keep the linker from
# dropping methods that nobody calls: a fifth of the binary.
BUILDFLAGS := -trimpath -buildvcs=false -tags grpcnotrace -ldflags "$(LDFLAGS)"
STATIC_GO  := CGO_ENABLED=0 $(GO)

# Packages of both modules, joined by go.work. The tools and the examples are modules apart,
# so that their dependencies do not mix with ours.
PACKAGES    := ./... ./client/...
GO_TOOLS    := GOWORK=off $(GO) -C tools
GO_EXAMPLES := GOWORK=off $(GO) -C examples

# What 'make generate' runs besides our own protogen, and what comes out of it.
GENERATORS := google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc \
	golang.org/x/sys/windows/mkwinsyscall
GENERATED  := '*.pb.go' '*zsyscall_windows.go' 'docs/cli/*.md'

GREP_TESTS := grep -r --include='*_test.go' --exclude-dir=tools

# -race where it works: it needs a C compiler. The way to know is to build something with
# it, once and only for a target that asks.
RACE = $(eval RACE := $(shell $(GO) test -race -c -o /dev/null errors 2>/dev/null && echo -race))$(RACE)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: native ## Build the programs for Windows nodes, and those that run here, into bin
	GOOS=windows GOARCH=amd64 $(STATIC_GO) build $(BUILDFLAGS) -o bin/ $(WINDOWS_PROGRAMS:%=./cmd/%)

.PHONY: native
native:
	$(STATIC_GO) build $(BUILDFLAGS) -o bin/ $(NATIVE_PROGRAMS:%=./cmd/%)

.PHONY: demo
demo: native ## Show a driver's calls to an emulated Windows node, each answer checked
	$(STATIC_GO) run $(BUILDFLAGS) ./hack/demo -sim bin/csi-proxy-sim

.PHONY: run
run: native ## Serve an emulated Windows node in use until interrupted; ARGS="-help" lists its flags
	bin/csi-proxy-sim $(ARGS)

.PHONY: test
test: ## Run all tests, and compile all tests for Windows
	@[ -n "$(RACE)" ] || echo >&2 "NOTE: testing without the race detector, which needs a working C compiler."
	$(GO) test $(RACE) -shuffle=on $(PACKAGES)
	$(GO_TOOLS) test $(RACE) -shuffle=on ./protogen
	$(GO_EXAMPLES) test $(RACE) -shuffle=on -count=1 ./... # the go command does not see that manuals changed
	GOOS=windows $(GO) vet -trimpath -tags=vhdx,wine $(PACKAGES)
	GOOS=windows $(GO_EXAMPLES) vet -trimpath ./...

# One package after the other, so that each test says at once how far it is.
.PHONY: test-wine
test-wine: build ## Run the Windows programs and tests under Wine, which is installed for this user if need be
	$(GO) test -tags=wine -count=1 -v -p=1 -timeout=20m ./test/wine/...

.PHONY: lint
lint: bin/tools/golangci-lint ## Check style and import rules, for Linux and for Windows
	GOOS=linux bin/tools/golangci-lint run $(PACKAGES)
	GOOS=windows bin/tools/golangci-lint run $(PACKAGES)
	cd tools && GOWORK=off ../bin/tools/golangci-lint run ./protogen
	cd examples && GOOS=linux GOWORK=off ../bin/tools/golangci-lint run ./...
	cd examples && GOOS=windows GOWORK=off ../bin/tools/golangci-lint run ./...

.PHONY: bench
bench: ## Run all benchmarks, each for BENCHTIME (1s)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) \
		$(sort $(dir $(shell $(GREP_TESTS) -l '^func Benchmark' .)))

.PHONY: fuzz
fuzz: ## Run all fuzz tests, each for FUZZTIME (20s)
	@$(GREP_TESTS) -Ho '^func Fuzz[[:alnum:]_]*' . | while IFS=: read -r file func; do \
		echo "$${file%/*} $${func#func }"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$${file%/*}" || exit; \
	done

.PHONY: generate
generate: ## Write all generated code, and the reference of csi-proxyctl, anew
	$(GO_TOOLS) build -o ../bin/tools/ ./protogen $(GENERATORS)
	bin/tools/protogen -plugins bin/tools client/api
	bin/tools/protogen -plugins bin/tools internal/inspect
	PATH="$(CURDIR)/bin/tools:$$PATH" $(GO) generate $(PACKAGES)

.PHONY: verify
verify: generate ## Check that generated code and go.mod files are up to date
	@git --no-pager diff --exit-code -- $(GENERATED) && \
		! git ls-files --others --exclude-standard -- $(GENERATED) | grep . || \
		{ echo >&2 "ERROR: generated code was out of date; commit what 'make generate' has written."; exit 1; }
	@for module in . client tools examples; do \
		GOWORK=off $(GO) -C $$module mod tidy -diff || \
		{ echo >&2 "ERROR: run 'GOWORK=off go -C $$module mod tidy' and commit the result."; exit 1; }; \
	done

.PHONY: clean
clean: ## Remove everything that these targets have built
	rm -rf bin

bin/tools/golangci-lint: tools/go.mod tools/go.sum
	$(GO_TOOLS) build -o ../bin/tools/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
