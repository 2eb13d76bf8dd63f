# The only list of commands; CI runs the same targets.
.DEFAULT_GOAL := help
CARGO ?= cargo

.PHONY: help check generate
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

check: ## formatting, lints and docs
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

generate: ## renew the checked-in files that are made from code
	release=$$($(CARGO) run --quiet -p redis-operator -- --version) && \
	$(CARGO) run --quiet -p redis-operator -- manifests --output-dir operator/deploy/$${release##* }
