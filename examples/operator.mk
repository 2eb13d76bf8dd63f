# What the Makefiles of the examples share. They set NAME, PLURAL, VERSION and CRD.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo
export CARGO
TOP := ../..
# A checkout with a space in its path is built elsewhere: see tests/target-dir.
ifneq ($(words $(CURDIR)),1)
export CARGO_TARGET_DIR := $(shell $(TOP)/tests/target-dir)
endif
KUBECTL ?= kubectl
NAMESPACE ?= $(NAME)
IMG ?= registry.example.com/$(NAME):$(VERSION)
TARGET ?= $(shell uname -m)-unknown-linux-gnu
# The operator's program: by default cargo builds and runs it.
PROGRAM ?= $(CARGO) run --quiet --locked -p $(NAME) --
OLMKIT ?= $(CARGO) run --quiet --locked -p olmkit --
# Builds it static, and prints where it is.
STATIC ?= RUSTFLAGS='-C target-feature=+crt-static' $(TOP)/tests/built --profile dist --target $(TARGET) -p $(NAME)

.PHONY: help manifests install uninstall run image
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

manifests: ## write the CRD of this release from the types
	@mkdir -p $(dir $(CRD)) && $(PROGRAM) crd >$(CRD)
	@echo $(CRD)

install: ## the CRD alone, for an operator that runs outside the cluster
	$(KUBECTL) apply --server-side -f $(CRD)

uninstall: ## remove the CRD, and every object of its kind with it
	$(KUBECTL) delete crd $(PLURAL) --ignore-not-found

run: ## run the operator outside the cluster, with KUBECONFIG
	$(PROGRAM) run

image: ## build the program, static, and push it in an image of its own: IMG=…
	program=$$($(STATIC)) && $(CARGO) run --quiet --locked -p olmkit --example program-image -- $(IMG) "$$program"
