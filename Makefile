# The only list of commands; CI runs the same targets.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo
export CARGO
# A checkout with a space in its path is built elsewhere: see tests/target-dir.
ifneq ($(words $(CURDIR)),1)
export CARGO_TARGET_DIR := $(shell tests/target-dir)
endif

.PHONY: help demo check size test corpus cluster cluster-down e2e kind fuzz soak server bench bench-cluster dist dist-check docs book generate
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

demo: ## package RedisCluster 0.1.0 to 0.4.0, link the versions, build the images, print the upgrade paths, upgrade one
	@olmkit=$$(tests/built) && demo/run "$$olmkit" target/demo

check: ## formatting, words, lints and docs
	tests/words
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

size: ## print the lines of production code by room, the verbs and flags, and how long CI took here last
	@tests/size

# `cargo fetch` downloads the crates of every platform, whose licences tests/tidy.rs checks; a build only those of this one.
test: ## run every test that needs no cluster, and print the counts
	@mkdir -p target
	@tests/packages
	@tests/servers
	@$(CARGO) fetch --locked --quiet || echo "cargo fetch failed: tests that need every crate are not run"
	@tests/programs 2>&1 | tee target/test.log && status=0 || status=$$?; \
	tests/counts target/test.log && exit $$status

corpus: ## compare with the recorded answers of OLM's own tools (OLMKIT_CORPUS, or ../shared/corpus)
	$(CARGO) test --workspace --locked --test corpus

cluster: ## start a test cluster (kind if its images are local, else from parts) and print shell settings; OLM=1 installs OLM (docs/cluster.md)
	@tests/cluster/up $(if $(filter 1,$(OLM)),--olm)

cluster-down: ## stop the test cluster
	@tests/cluster/down

e2e: ## run the tests on the cluster of KUBECONFIG, or on a temporary one (E2E_KEEP=1 keeps the namespaces of failed tests)
	@tests/e2e/run

kind: ## run `operator test --kind` on kind, on images that are made here (KUBERNETES=1.33: with nodes of that minor version)
	@tests/cluster/with-kind tests/e2e/on-kind

fuzz: ## a minute of seeded mutations (OLMKIT_FUZZ_SECONDS, OLMKIT_FUZZ_SEED)
	OLMKIT_FUZZ_SECONDS=$${OLMKIT_FUZZ_SECONDS:-60} $(CARGO) test --workspace --locked --test fuzz -- --nocapture

chaos: ## faults on real redis-servers and a real API server while a client writes, with three seeds each: prints the table of docs/redis-operator.md
	OLMKIT_CHAOS_SEEDS=$${OLMKIT_CHAOS_SEEDS:-3} $(CARGO) test --workspace --locked --quiet --test processes --test apiserver -- chaos --nocapture

soak: ## ten minutes of clients and reloads: the server's memory stays flat
	OLMKIT_SOAK_SECONDS=600 $(CARGO) test --workspace --locked --test serve soak -- --nocapture

# A target with musl links statically by itself; glibc has to be told so.
SERVER_TARGET ?= $(shell uname -m)-unknown-linux-gnu
server: ## build the static catalog server for catalog images, and print its path (SERVER_TARGET: for another platform)
	@RUSTFLAGS="-C target-feature=+crt-static" CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_LTO=thin tests/built --release \
	  --package olmkit-serve --bin olmkit-serve --target $(SERVER_TARGET)

bench: ## compare the speed with other installed tools (CATALOG=DIR, BUNDLES=DIR: your own input)
	@olmkit=$$(tests/built --release) && \
	server=$$(tests/built --release --package olmkit-serve --bin olmkit-serve) && \
	multiply=$$(tests/built --release --package olmkit-catalog --example multiply) && \
	probe=$$(tests/built --release --package olmkit-serve --example probe) && \
	tests/bench/generate "$$olmkit" && \
	tests/bench/images "$$olmkit" $(CATALOG) && \
	tests/bench/validate "$$olmkit" $(BUNDLES) && \
	tests/bench/diff "$$olmkit" && \
	tests/bench/edits "$$olmkit" && \
	tests/bench/serve "$$server" "$$multiply" "$$probe" $(CATALOG) && \
	tests/bench/peers "$$olmkit" "$$probe"
	tests/bench/redis

bench-cluster: ## measure the seconds that olmkit adds to OLM, on a cluster with OLM: prints a Markdown table
	@olmkit=$$(tests/built --release) && tests/bench/cluster "$$olmkit"

dist: ## build what a release publishes, in target/published: static programs, checksums, bills of materials, an image
	@dist/build

dist-check: ## check that two release builds in two directories are identical
	@dist/check

docs: ## the documentation of the code
	$(CARGO) doc --workspace --no-deps --locked --open

book: ## build the book of docs/ with mdBook, and print its first page
	@docs/make-book

generate: ## regenerate the checked-in files that are made from code
	release=$$($(CARGO) run --quiet -p redis-operator -- --version) && \
	$(CARGO) run --quiet -p redis-operator -- manifests --output-dir operator/deploy/$${release##* }
	OLMKIT_GENERATE=1 $(CARGO) test --workspace --locked --quiet --test docs --test demo --test serve
