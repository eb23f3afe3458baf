# Everything one does with this repository. Go and make are enough, nothing needs root,
# and only test-wine, test-browser, test-clients, test-drivers, osslsigncode and image download anything but Go modules. `make`
# alone lists the targets. Long commands are not printed; V=1 prints them.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

Q         := $(if $(V),,@)
GO        ?= go
VERSION   ?= $(shell git describe --tags --match 'v1.*' --always --dirty 2>/dev/null || echo devel)
# The programs contain the commit and its time. SOURCE_DATE_EPOCH, in seconds, overrides the time.
COMMIT    ?= $(shell git rev-parse HEAD 2>/dev/null)
EPOCH     := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)
DATE      := $(shell date -u -d @$(EPOCH) +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r $(EPOCH) +%Y-%m-%dT%H:%M:%SZ)
# Flags of the emulated node that 'make run' serves.
ARGS      ?= -preset busy
BENCHTIME ?= 0.5s
FUZZTIME  ?= 20s
FUZZJOBS  ?= 2
SEEDS     ?= 1000
FIRST     ?= 1
ATTACKTIME ?= 5s
# What samples follow from: by default another one each day, so that results of tests are kept for a day.
SEED      ?= $(shell date +%Y%m%d)
# SHUFFLE=on runs test and test-whole in another order each time, as CI does. The go command keeps no results then.
SHUFFLE   ?= off

# The programs: those for Windows nodes, and those that also run here.
PROGRAMS         := ./v2/cmd
WINDOWS_PROGRAMS := csi-proxy csi-proxyctl csi-proxy-sim
NATIVE_PROGRAMS  := csi-proxyctl csi-proxy-sim

# For 'make release': where the files go, the platforms, the image that chart and manifests name, and
# the certificate that signs the programs, if any. HOME_URL is the address of the project, such as
# https://github.com/OWNER/csi-proxy: chart, image, signatures and notes name it. UNRELEASED=1 allows source that is not tagged VERSION.
DIST              ?= dist
RELEASE_PLATFORMS ?= windows/amd64 windows/arm64 linux/amd64 linux/arm64
PLUGIN_PLATFORMS  ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
IMAGE_REPOSITORY  ?= registry.example/csi-proxy
HOME_URL          ?=
UNRELEASED        ?=
SIGN_CERT         ?=
SIGN_KEY          ?=
SIGN_TIMESTAMP    ?=

# VERSION says more than the stamp of the go command, which fails in a checkout of another user.
STAMP      := github.com/kubernetes-csi/csi-proxy/v2/internal/version
LDFLAGS    := -s -w -X $(STAMP).stamped=$(VERSION) -X $(STAMP).commit=$(COMMIT) -X $(STAMP).date=$(DATE)
# Without grpcnotrace gRPC links golang.org/x/net/trace, whose templates keep the linker from
# dropping unused methods: a fifth of the binary. Without nethttpomithttp2 the server of the metrics, which speaks
# HTTP/1, brings a second implementation of HTTP/2, 0.35 MB.
export TAGS := grpcnotrace,nethttpomithttp2
BUILDFLAGS  := -buildvcs=false -ldflags "$(LDFLAGS)"
# Programs, tests, vet and lint have the same flags, so that they share what is compiled. Tools and plugin have no tags.
export CGO_ENABLED := 0
export GOFLAGS     := -trimpath -tags=$(TAGS)

# Packages of the modules that go.work joins: library, client, mounter and its tests, programs and their tests. The tools
# and the examples are modules apart, so that their dependencies do not mix with ours.
MODULES      := client mounter mounter/mountertest v2 v2/cmd v2/test
PACKAGES     := $(MODULES:%=./%/...)
APART        := GOWORK=off GOFLAGS=-trimpath
GO_TOOLS     := $(APART) $(GO) -C tools
OUR_TOOLS    := ./image ./interceptgen ./manifests/... ./protogen ./release
GO_EXAMPLES  := GOWORK=off $(GO) -C examples
GO_KUBECTL   := $(APART) $(GO) -C kubectl-csi_proxy

# What 'make generate' runs besides our own protogen, and what it writes.
GENERATORS := google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc \
	golang.org/x/sys/windows/mkwinsyscall
GENERATED  := '*.pb.go' 'client/groups/*/client.go' '*zsyscall_windows.go' '*zintercept.go' 'docs/cli/*.md' deploy/manifests deploy/charts/csi-proxy/README.md tools/manifests/testdata

GREP_TESTS := grep -r --include='*_test.go' --exclude-dir=tools

# RACE=-race runs the tests with the race detector, as CI does, which has lint for vet. It needs a C compiler. Tests that only
# search this repository, or compare what one goroutine prints, take five times as long with it and show no more. GOGC
# trades memory for time.
RACE       ?=
RACE_ON    := $(if $(RACE),CGO_ENABLED=1 GOGC=400)
RACE_FLAGS := $(if $(RACE),$(RACE) -vet=off)
SEQUENTIAL := ./v2/cmd/pkg/ctl/command ./v2/internal/testing/...
CONCURRENT  = $(if $(RACE),$(filter-out $(shell $(GO) list $(SEQUENTIAL)),$(shell $(GO) list $(PACKAGES))),$(PACKAGES))

# The tests of which -short tries only a sample of the cases, or nothing. 'make simulate' runs the simulation.
SAMPLED       := sweep\.OneIn|testing\.Short\(\)
SAMPLED_FILES  = $(sort $(shell $(GREP_TESTS) -lE '$(SAMPLED)' --exclude-dir=sweep --exclude-dir=simulation $(MODULES)))
SAMPLED_TESTS  = $(shell awk '/^func /{name=$$2; sub("[\050].*", "", name)} /$(SAMPLED)/{print name}' $(SAMPLED_FILES) | sort -u | paste -sd'|')

# Tests wait more than they compute.
TEST_FLAGS := -parallel=8 -timeout=20m

ORDER := $(if $(filter-out off,$(SHUFFLE)),-shuffle=$(SHUFFLE))

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: native resources ## Build the programs for Windows nodes, and those that run here, into bin
	@echo "build $(WINDOWS_PROGRAMS:%=%.exe) csi-proxy-verify.exe (windows/amd64)"
	$(Q)GOOS=windows GOARCH=amd64 $(GO) build $(BUILDFLAGS) -o bin/ $(WINDOWS_PROGRAMS:%=$(PROGRAMS)/%)
	$(Q)GOOS=windows GOARCH=amd64 $(GO) test -c $(BUILDFLAGS) -o bin/csi-proxy-verify.exe ./v2/test/windows

.PHONY: native
native:
	@echo "build $(NATIVE_PROGRAMS)"
	@[ -e bin/csi-proxy-sim ] || echo "compiling; the first run takes several minutes"
	$(Q)$(GO) build $(BUILDFLAGS) -o bin/ $(NATIVE_PROGRAMS:%=$(PROGRAMS)/%)

# Windows shows these as a file's properties. The linker finds them in the program's directory.
.PHONY: resources
resources: bin/tools/go-winres
	@echo "write version resources ($(VERSION))"
	$(Q)tools/release/resources.sh bin/tools/go-winres '$(VERSION)' '$(COMMIT)' $(DATE) $(WINDOWS_PROGRAMS:%=$(PROGRAMS)/%)

.PHONY: demo
demo: native ## Show the life of volumes on an emulated Windows node, each answer checked
	$(Q)$(GO) run $(BUILDFLAGS) ./v2/test/demo

.PHONY: run
run: native ## Serve an emulated Windows node in use until interrupted; ARGS="-help" lists its flags
	bin/csi-proxy-sim $(ARGS)

# What a person runs before each commit: 'make test PKG=./v2/pkg/volume/...' tests some packages only. ./pkg and
# ./internal are those of the library.
PKG ?=
# The go command keeps the results of tests although files outside their modules have changed, such as docs. These read some.
PAGE_TESTS := TestLinks|TestWords|TestLimits|TestSupplyChain|TestManual|TestPage|TestPages_AreThoseOfDocs|TestDocs|TestNode_Picture|TestWatch_Picture|TestSelect_Chart
.PHONY: test
test: export CSI_PROXY_SEED := $(SEED)
test: ## Run the tests of all packages, or of PKG=./pkg/volume/..., with samples of their sweeps
	@echo "sweeps try samples; make test SEED=$(SEED) tries the same cases again, and make test-whole all"
	$(RACE_ON) $(GO) test $(RACE_FLAGS) -short $(ORDER) $(TEST_FLAGS) $(or $(patsubst ./internal/%,./v2/internal/%,$(patsubst ./pkg/%,./v2/pkg/%,$(PKG))),$(CONCURRENT))
ifeq ($(PKG),)
	$(if $(RACE),$(GO) test -short $(ORDER) $(TEST_FLAGS) $(SEQUENTIAL))
	$(if $(ORDER),,$(GO) test -short -count=1 -run '^($(PAGE_TESTS))$$' $(sort $(dir $(shell $(GREP_TESTS) -lE '^func ($(PAGE_TESTS))\b' ./v2))))
	$(GO_TOOLS) test $(TEST_FLAGS) $(OUR_TOOLS)
	$(RACE_ON) $(GO_KUBECTL) test $(RACE_FLAGS) $(ORDER) $(TEST_FLAGS) ./...
	$(GO_EXAMPLES) test $(ORDER) -short ./... # Ginkgo refuses -parallel
	GOOS=windows $(GO) vet -tags=wine,$(TAGS) $(PACKAGES)
endif

.PHONY: check
check: bin/tools/golangci-lint ## Vet, lint and test the packages that have changed since BASE, by default the upstream branch
	tools/check.sh $(BASE)

.PHONY: test-whole
test-whole: ## Run whole sweeps, drivers' modules that use ours, and with the oldest versions that ours require
	$(GO) test $(ORDER) $(TEST_FLAGS) -run='^($(or $(SAMPLED_TESTS),$(error no samples)))$$' $(addprefix ./,$(sort $(dir $(SAMPLED_FILES))))
	for module in client mounter; do GOWORK=off $(GO) -C $$module test $(TEST_FLAGS) ./... || exit; done
	$(GO) vet -tags=drivers,wine,$(TAGS) ./v2/test/drivers/... ./v2/test/wine/...
	GOOS=windows $(GO_EXAMPLES) vet ./...

.PHONY: test-all
test-all: ## Run every test that needs no Windows, as CI does
	$(MAKE) test RACE=-race SHUFFLE=on
	$(MAKE) test-whole test-browser test-clients test-wine simulate attack SHUFFLE=on RACE=-race

# The rig and the suite beside each other, since both mostly wait; what tests say comes at the end of a package. The limit
# is for a machine whose host takes its processors away.
.PHONY: test-wine
test-wine: build ## Run the Windows programs and tests under Wine; installs it for this user if missing
	$(GO) test -tags=wine,$(TAGS) -count=1 -v -p=2 -timeout=40m ./v2/test/wine/...

# Chromium stays in the user's cache. Without it the tests are skipped, unless CSI_PROXY_BROWSER_REQUIRED
# is set. SCREENSHOTS=DIR keeps pictures of the pages.
CHROMIUM    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/csi-proxy/chromium
SCREENSHOTS ?=
.PHONY: test-browser
test-browser: native ## Test the web pages of csi-proxyctl in Chromium; installs it for this user if missing
	$(if $(SCREENSHOTS),mkdir -p '$(abspath $(SCREENSHOTS))')
	tools/chromium/install.sh '$(CHROMIUM)' || [ -z "$(CSI_PROXY_BROWSER_REQUIRED)$(CI)" ]
	$(GO) test -count=1 -v ./v2/test/browser -args -browser.chromium='$(CHROMIUM)/bin/chromium' -browser.programs=$(CURDIR)/bin \
		$(if $(SCREENSHOTS),-browser.screenshots='$(abspath $(SCREENSHOTS))')

# Packages stay in the user's cache. Without Node.js, or gRPC for Python, tests are skipped, unless
# CSI_PROXY_CLIENTS_REQUIRED is set.
CLIENTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/csi-proxy/clients
.PHONY: test-clients
test-clients: native ## Test the server with gRPC for Node.js and for Python; installs both for this user if missing
	v2/test/clients/install.sh '$(CLIENTS)' || [ -z "$(CSI_PROXY_CLIENTS_REQUIRED)$(CI)" ]
	$(GO) test -count=1 -v -parallel=4 ./v2/test/clients -args -clients.sim=$(CURDIR)/bin/csi-proxy-sim \
		-clients.node='$(CLIENTS)/bin/node' -clients.python='$(CLIENTS)/bin/python3'

# One driver after the other. Modules and builds of drivers stay in the caches of the go command and
# in bin/drivers: some gigabytes.
DRIVER_TESTS := ./v2/test/drivers/ported ./v2/test/drivers/unmodified
.PHONY: test-drivers
test-drivers: build ## Run released CSI drivers against the emulated node, under Wine
	$(GO) test -tags=drivers,wine,$(TAGS) -count=1 -v -p=1 -timeout=90m $(DRIVER_TESTS)

# The files that only a build for Windows has, in these modules.
ROOTS        := ./client ./mounter ./v2
GREP_WINDOWS := find $(ROOTS) -name testdata -prune -o -name '*_windows*.go' -print; grep -rlE --include='*.go' --exclude-dir=testdata '^//go:build.*windows' $(ROOTS)

.PHONY: lint
lint: bin/tools/golangci-lint bin/tools/actionlint ## Check style and import rules, for Linux and for Windows, and the workflows
	bin/tools/actionlint -shellcheck= -pyflakes= # so that the result does not depend on what is installed
	GOOS=linux bin/tools/golangci-lint run $(PACKAGES)
	GOOS=windows bin/tools/golangci-lint run $(sort $(dir $(shell $(GREP_WINDOWS))))
	cd tools && $(APART) ../bin/tools/golangci-lint run --build-tags=none $(OUR_TOOLS)
	cd kubectl-csi_proxy && $(APART) ../bin/tools/golangci-lint run --build-tags=none ./...
	cd examples && GOWORK=off ../bin/tools/golangci-lint run ./... # 'make test' vets what is for Windows

# Of what we ship and what drivers import, as it is on Windows and here. It asks vuln.go.dev.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in the code that our modules call; needs the internet
	GOBIN=$(CURDIR)/bin/tools $(GO) install $(GOVULNCHECK)
	@for module in $(MODULES) kubectl-csi_proxy; do for os in windows linux; do \
		echo "govulncheck $$module ($$os)"; \
		(cd $$module && GOWORK=off GOOS=$$os $(CURDIR)/bin/tools/govulncheck ./...) || exit; \
	done; done

# The benchmark binaries run one after the other. Without Wine, its part is left out. Wine 11, if CSI_PROXY_WINE names
# one, resolves names as Windows does; Wine 10 opens a handle for each question about a file.
BENCH_OUTPUT := bin/bench
.PHONY: bench
bench: build ## Run all benchmarks, each for BENCHTIME (0.5s), and write the figures, see report
	@mkdir -p $(BENCH_OUTPUT) && rm -f $(BENCH_OUTPUT)/*.txt
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -p 1 \
		$(sort $(dir $(shell $(GREP_TESTS) -l --exclude-dir=examples '^func Benchmark' .))) >$(BENCH_OUTPUT)/native.txt || \
		{ cat $(BENCH_OUTPUT)/native.txt; exit 1; }
	$(GO) test -tags=wine,$(TAGS) -count=1 -v -timeout=30m -run '^TestComparison$$' ./v2/test/wine/suite -figures=$(CURDIR)/$(BENCH_OUTPUT)/wine.txt
	$(MAKE) report

.PHONY: report
report: bin/tools/benchstat ## Write bin/bench/tables.txt, what benchstat says about the results of make bench
	while read -r table; do eval "bin/tools/benchstat -table .name $$table $(wildcard $(BENCH_OUTPUT)/[!t]*.txt)" || exit; done \
		<tools/benchstat.txt >$(BENCH_OUTPUT)/tables.txt

# Several at a time, each with one worker: a short run mostly builds and starts. If one fails, the
# others still run; its testdata has what it found. Up to Go 1.26, the end of FUZZTIME by itself can
# fail a test that has found nothing (golang/go#75804); that is not a failure here.
.PHONY: fuzz
fuzz: ## Run all fuzz tests, each for FUZZTIME (20s), FUZZJOBS (2) at a time
	@$(GREP_TESTS) -Ho '^func Fuzz[[:alnum:]_]*' . | sed 's|/[^/]*:func | |' | \
		xargs -P $(FUZZJOBS) -L 1 sh -c 'output=$$($(GO) test -run "^$$" -fuzz "^$$2$$" -parallel 1 -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$1" 2>&1); \
		result=$$?; echo "$$1 $$2: $$(echo "$$output" | grep "^fuzz: elapsed" | tail -1)"; \
		[ $$result = 0 ] || echo "$$output" | grep -A1 "^--- FAIL: Fuzz" | grep -qx "    context deadline exceeded" || { echo "$$output"; exit 1; }' fuzz

.PHONY: simulate
simulate: ## Run SEEDS (1000) simulations of a whole node, from the seed FIRST (1) on, and check that they replay
	$(GO) test -c -o bin/simulation.test ./v2/test/simulation
	bin/simulation.test -test.run='^TestSimulation$$' -first=$(FIRST) -seeds=$$(($(SEEDS) / 2)) & \
	bin/simulation.test -test.run='^(TestSimulation|TestReplay)$$' -first=$$(($(FIRST) + $(SEEDS) / 2)) -seeds=$$(($(SEEDS) - $(SEEDS) / 2)); result=$$?; wait $$! && exit $$result

.PHONY: attack
attack: native ## Attack csi-proxy-sim with each known attack, for ATTACKTIME (5s) each; its other clients must not notice
	$(GO) test -count=1 -v -timeout=30m ./v2/test/attack -args -attack.sim=$(CURDIR)/bin/csi-proxy-sim -attack.time=$(ATTACKTIME) -attack.table=$(CURDIR)/bin/attack.md

.PHONY: generate
generate: ## Write the generated code, the reference of csi-proxyctl and the manifests
	$(GO_TOOLS) build -o ../bin/tools/ ./interceptgen ./protogen $(GENERATORS)
	bin/tools/protogen -plugins bin/tools -clients client/api
	bin/tools/protogen -plugins bin/tools client/extension
	PATH="$(CURDIR)/bin/tools:$$PATH" $(GO) generate $(PACKAGES)
	$(GO_TOOLS) run ./manifests/render

# Without tools: to tidy it, the go command downloads half a gigabyte. Its build fails if a requirement is missing.
.PHONY: verify
verify: generate ## Check that generated code and go.mod files are up to date
	@git --no-pager diff --exit-code -- $(GENERATED) && \
		! git ls-files --others --exclude-standard -- $(GENERATED) | grep . || \
		{ echo >&2 "ERROR: generated code was out of date; run 'make generate' and commit the result."; exit 1; }
	@for module in $(MODULES) examples kubectl-csi_proxy; do \
		GOWORK=off $(GO) -C $$module mod tidy -diff || \
		{ echo >&2 "ERROR: run 'GOWORK=off go -C $$module mod tidy' and commit the result."; exit 1; }; \
	done

# Before anything is built or removed.
.PHONY: releasable
releasable:
	@echo "check names and source ($(VERSION))"
	$(Q)UNRELEASED='$(UNRELEASED)' SIGN_CERT='$(SIGN_CERT)' SIGN_KEY='$(SIGN_KEY)' \
		tools/release/check.sh '$(VERSION)' '$(IMAGE_REPOSITORY)' '$(HOME_URL)'

.PHONY: release-notes
release-notes: ## Print what CHANGELOG.md says about VERSION=v1.4.0
	@tools/release/notes.sh '$(VERSION)' '$(HOME_URL)' && printf '\nModules:\n\n' && sed 's/^/- /' tools/release/versions.txt && \
		printf '\nFrom `goproxy`, where it was unpacked:\n\n' && grep '^    export' docs/releasing.md

# REMOTE=origin pushes the tags.
REMOTE ?=
.PHONY: tag
tag: ## Tag VERSION=v1.4.0 and the modules, on a commit whose go.mod files replace nothing
	tools/release/tag.sh '$(VERSION)' $(DATE) $(REMOTE)

.PHONY: release
release: releasable resources ## Make the files of a release, VERSION=v1.4.0, in dist; see docs/releasing.md
	$(Q)rm -rf $(DIST)
	$(Q)for platform in $(RELEASE_PLATFORMS); do \
		case $$platform in windows/*) programs="$(WINDOWS_PROGRAMS)";; *) programs="$(NATIVE_PROGRAMS)";; esac; \
		dir=$(DIST)/build/$$(echo $$platform | tr / _); mkdir -p $$dir; \
		for program in $$programs; do packages="$$packages $(PROGRAMS)/$$program"; done; \
		echo "build $$programs ($$platform)"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build $(BUILDFLAGS) -o $$dir/ $$packages || exit; \
		case $$platform in windows/*) GOOS=windows GOARCH=$${platform#*/} $(GO) test -c $(BUILDFLAGS) -o $$dir/csi-proxy-verify.exe ./v2/test/windows || exit;; esac; \
		packages=; \
	done
	$(Q)for platform in $(PLUGIN_PLATFORMS); do \
		echo "build kubectl-csi_proxy ($$platform)"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO_KUBECTL) build -buildvcs=false -ldflags='-s -w -X main.stamped=$(VERSION)' \
			-o '$(abspath $(DIST))'/plugin/$$(echo $$platform | tr / _)/ . || exit; \
	done
	$(Q)SIGN_CERT='$(SIGN_CERT)' SIGN_KEY='$(SIGN_KEY)' SIGN_TIMESTAMP='$(SIGN_TIMESTAMP)' HOME_URL='$(HOME_URL)' SOURCE_DATE_EPOCH=$(EPOCH) \
		tools/release/sign.sh $(DIST)/build/windows_*/*.exe
	@echo "pack $(DIST)"
	$(Q)$(GO_TOOLS) run ./release -source '$(CURDIR)' -dist '$(abspath $(DIST))' -version '$(VERSION)' -date $(DATE) \
		-image-repository '$(IMAGE_REPOSITORY)' -home '$(HOME_URL)'

# Installs the tool that signs programs for Windows. To use it, set OSSLSIGNCODE to
# bin/osslsigncode/bin/osslsigncode.
.PHONY: osslsigncode
osslsigncode:
	tools/release/install-osslsigncode.sh bin/osslsigncode

.PHONY: verify-release
verify-release: ## Make a release twice, in different directories, and compare the bytes
	tools/release/verify.sh "$(or $(filter v%,$(VERSION)),v0.0.0-verify)" "$(RELEASE_PLATFORMS)"

.PHONY: test-adopt
test-adopt: ## Make a release in a scratch directory, and use it from modules and nodes that have nothing else
	tools/release/adopt.sh

# The image has the programs of a release for Windows, and their licences. It needs no container engine. Without
# IMAGE_BASE nothing is downloaded; such an image can be inspected, but a node refuses it. The base is for amd64.
IMAGE_BASE ?= mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0@sha256:b4c9637e032f667c52d1eccfa31ad8c63f1b035e8639f3f48a510536bf34032b
IMAGE      ?= $(IMAGE_REPOSITORY):$(VERSION)
IMAGE_FILE := csi-proxy_$(VERSION)_image.tar
.PHONY: image
image: bin/tools/crane ## Make the HostProcess image from the archive in dist, as a file for bin/tools/crane push
	$(Q)cd $(DIST) && sha256sum --quiet --check --ignore-missing SHA256SUMS
	@echo "write $(DIST)/$(IMAGE_FILE)"
	$(Q)$(GO_TOOLS) run ./image -archive '$(abspath $(DIST))/csi-proxy_$(VERSION)_windows_amd64.zip' -base '$(IMAGE_BASE)' -tag '$(IMAGE)' \
		-output '$(abspath $(DIST))/$(IMAGE_FILE)' -commit '$(COMMIT)' -date $(DATE) -home '$(HOME_URL)'

.PHONY: clean
clean: ## Remove everything that these targets build
	rm -rf bin dist $(PROGRAMS)/*/version_windows_*.syso

# Tools that are modules of others.
bin/tools/golangci-lint: MODULE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
bin/tools/actionlint:    MODULE := github.com/rhysd/actionlint/cmd/actionlint
bin/tools/benchstat:     MODULE := golang.org/x/perf/cmd/benchstat
bin/tools/crane:         MODULE := github.com/google/go-containerregistry/cmd/crane
bin/tools/go-winres:     MODULE := github.com/tc-hib/go-winres
bin/tools/golangci-lint bin/tools/actionlint bin/tools/benchstat bin/tools/crane bin/tools/go-winres: tools/go.mod tools/go.sum
	$(GO_TOOLS) build -o ../$@ $(MODULE)
