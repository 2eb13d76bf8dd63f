# What the Makefiles of examples share whose releases are plain manifests, in deploy/X.Y.Z/.

# What is installed, with the image and the namespace that were asked for.
INSTALLED = sed -s -e '$$a---' -e 's|registry.example.com/$(NAME):.*|$(IMG)|' -e 's|namespace: $(NAME)$$|namespace: $(NAMESPACE)|'

.PHONY: deploy undeploy deployment bundle
deploy: ## install the operator: IMG=…, NAMESPACE=…
	($(KUBECTL) get namespace $(NAMESPACE) >/dev/null 2>&1 || $(KUBECTL) create namespace $(NAMESPACE))
	$(INSTALLED) deploy/$(VERSION)/install/*.yaml | $(KUBECTL) apply --server-side -f -
	$(KUBECTL) -n $(NAMESPACE) rollout status deployment/$(NAME) --timeout=120s

deployment: ## its Deployment alone, where the rest is there: IMG=…, NAMESPACE=…
	$(INSTALLED) deploy/$(VERSION)/install/operator.yaml | $(KUBECTL) apply --server-side -f -
	$(KUBECTL) -n $(NAMESPACE) rollout status deployment/$(NAME) --timeout=120s

undeploy: ## remove the operator, its CRD, and every object of its kind
	$(INSTALLED) deploy/$(VERSION)/install/*.yaml | $(KUBECTL) delete --ignore-not-found -f -

bundle: ## the bundle of this release: bundle/
	$(OLMKIT) bundle generate deploy/$(VERSION)/install deploy/$(VERSION)/samples --version $(VERSION) --output-dir bundle
