# The only list of commands; CI runs the same targets.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo

.PHONY: help demo check test corpus cluster cluster-down e2e fuzz soak server bench docs generate
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

demo: ## package RedisCluster 0.1.0 to 0.4.0, link the versions, build the images, print the upgrade paths, upgrade one
	@$(CARGO) build --quiet --locked
	@demo/run target/debug/olmkit target/demo

check: ## formatting, lints and docs
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

test: ## every test; ends with the counts
	@mkdir -p target
	@tests/packages
	$(CARGO) test --workspace --locked 2>&1 | tee target/test.log
	@tests/counts target/test.log

corpus: ## compare with the recorded answers of OLM's own tools (OLMKIT_CORPUS, or ../shared/corpus)
	$(CARGO) test --workspace --locked --test corpus

cluster: ## a cluster for tests: kind's where its images are, else one from parts; as shell settings (docs/cluster.md)
	@tests/cluster/up

cluster-down: ## take it down
	@tests/cluster/down

e2e: ## the tests on a cluster: that of KUBECONFIG, or one that is made for them (E2E_KEEP=1 keeps what failed)
	@tests/e2e/run

fuzz: ## a minute of seeded mutations (OLMKIT_FUZZ_SECONDS, OLMKIT_FUZZ_SEED)
	OLMKIT_FUZZ_SECONDS=$${OLMKIT_FUZZ_SECONDS:-60} $(CARGO) test --workspace --locked --test fuzz -- --nocapture

soak: ## ten minutes of clients and reloads: the server's memory stays flat
	OLMKIT_SOAK_SECONDS=600 $(CARGO) test --workspace --locked --test serve soak -- --nocapture

# A target with musl links statically by itself; glibc has to be told so.
SERVER_TARGET ?= x86_64-unknown-linux-gnu
server: ## the static catalog server that catalog images carry (SERVER_TARGET: for another platform)
	RUSTFLAGS="-C target-feature=+crt-static" CARGO_PROFILE_RELEASE_STRIP=symbols $(CARGO) build --release --locked \
	  --package olmkit-catalog --features serve --bin olmkit-serve --target $(SERVER_TARGET)
	@ls -l target/$(SERVER_TARGET)/release/olmkit-serve

bench: ## speed against other tools, where they are installed (CATALOG=DIR, BUNDLES=DIR: of yours)
	$(CARGO) build --release --locked
	tests/bench/generate target/release/olmkit
	tests/bench/images target/release/olmkit $(CATALOG)
	tests/bench/validate target/release/olmkit $(BUNDLES)
	$(CARGO) build --release --locked --package olmkit-catalog --features serve --bin olmkit-serve --examples
	tests/bench/serve target/release/olmkit-serve target/release/examples/multiply target/release/examples/probe $(CATALOG)
	tests/bench/catalogs target/release/olmkit
	tests/bench/redis

docs: ## the documentation of the code
	$(CARGO) doc --workspace --no-deps --locked --open

generate: ## renew the checked-in files that are made from code
	release=$$($(CARGO) run --quiet -p redis-operator -- --version) && \
	$(CARGO) run --quiet -p redis-operator -- manifests --output-dir operator/deploy/$${release##* }
	OLMKIT_GENERATE=1 $(CARGO) test --workspace --locked --quiet --test docs --test demo --test serve
