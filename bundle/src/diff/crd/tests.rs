//! One small change of a CRD at a time, and the codes of all its findings.

use super::compare;
use crate::parse::Object;
use crate::source::Source;
use crate::yaml::first_document;

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kettles.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Kettle, plural: kettles, singular: kettle, listKind: KettleList, shortNames: [kt], categories: [tea]}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.cups, statusReplicasPath: .status.cups}
    additionalPrinterColumns:
    - {name: Cups, type: integer, jsonPath: .spec.cups}
    selectableFields:
    - jsonPath: .spec.kind
    schema:
      openAPIV3Schema:
        type: object
        description: A kettle.
        properties:
          spec:
            type: object
            required: [kind]
            properties:
              kind: {type: string, enum: [iron, glass], default: iron}
              cups: {type: integer, minimum: 1, maximum: 8, format: int32}
              name: {type: string, maxLength: 20, minLength: 2, pattern: '^[a-z]+$'}
              note: {type: string, nullable: true, format: uri}
              step: {type: integer, multipleOf: 2}
              teas: {type: array, maxItems: 5, minItems: 1, items: {type: string}, x-kubernetes-list-type: set}
              lids:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    size: {type: integer}
              tags: {type: object, additionalProperties: {type: string}, maxProperties: 9}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              port: {x-kubernetes-int-or-string: true}
              heat:
                type: object
                x-kubernetes-validations:
                - {rule: self.low < self.high, message: low first}
                properties:
                  low: {type: integer}
                  high: {type: number}
              pick: {type: object, oneOf: [{required: [a]}, {required: [b]}], properties: {a: {type: string}, b: {type: string}}}
          status:
            type: object
            properties:
              cups: {type: integer}
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: w, namespace: n}}, conversionReviewVersions: [v1]}}
";

/// The change, what stands there before and after, and the codes; one with a star carries a check of OLM v1.
type Change = (&'static str, &'static str, &'static str, &'static str);

const CHANGES: &[Change] = &[
    ("nothing", "A kettle.", "A kettle.", ""),
    ("a description", "A kettle.", "Boils water.", ""),
    ("the order of an enum", "[iron, glass]", "[glass, iron]", ""),
    (
        "the order of properties",
        "                  low: {type: integer}\n                  high: {type: number}\n",
        "                  high: {type: number}\n                  low: {type: integer}\n",
        "",
    ),
    ("the message of a rule", "message: low first", "message: first low", "crd-upgrade-refused*"),
    ("the scope", "scope: Namespaced", "scope: Cluster", "crd-scope-changed*"),
    ("the kind", "kind: Kettle,", "kind: Pot,", "crd-names-changed"),
    ("the group", "group: example.com", "group: example.org", "crd-names-changed"),
    ("the plural", "plural: kettles", "plural: kettels", "crd-names-changed"),
    ("the list kind", "listKind: KettleList", "listKind: Kettles", "crd-names-changed"),
    ("the list kind that is the default", "listKind: KettleList, ", "", ""),
    ("a short name", "shortNames: [kt]", "shortNames: []", "crd-short-name-removed"),
    ("a category", "categories: [tea]", "categories: [coffee]", "crd-short-name-removed"),
    (
        "a version that is gone",
        "name: v1alpha1",
        "name: v1alpha2",
        "crd-served-version-removed crd-version-added",
    ),
    (
        "the stored version that is gone",
        "name: v1\n",
        "name: v2\n",
        "crd-stored-version-removed* crd-version-added",
    ),
    (
        "a version no longer served",
        "v1alpha1\n    served: true",
        "v1alpha1\n    served: false",
        "crd-served-version-removed",
    ),
    (
        "a version that is deprecated",
        "    storage: false",
        "    storage: false\n    deprecated: true",
        "crd-version-deprecated",
    ),
    (
        "the conversion that is gone",
        "strategy: Webhook, webhook: {clientConfig: {service: {name: w, namespace: n}}, conversionReviewVersions: [v1]}",
        "strategy: None",
        "crd-conversion-removed",
    ),
    ("another webhook", "{name: w,", "{name: x,", "crd-conversion-changed"),
    (
        "a column that is gone",
        "    - {name: Cups, type: integer, jsonPath: .spec.cups}",
        "      []",
        "crd-printer-column-changed",
    ),
    (
        "a column of another type",
        "type: integer, jsonPath",
        "type: string, jsonPath",
        "crd-printer-column-changed",
    ),
    ("the status subresource that is gone", "      status: {}\n", "", "crd-subresource-removed"),
    (
        "the scale subresource that changes",
        "specReplicasPath: .spec.cups",
        "specReplicasPath: .spec.step",
        "crd-subresource-changed",
    ),
    (
        "a selectable field that is gone",
        "    - jsonPath: .spec.kind",
        "      []",
        "crd-selectable-field-removed",
    ),
    (
        "unknown fields that are kept by the CRD",
        "  scope: Namespaced",
        "  scope: Namespaced\n  preserveUnknownFields: true",
        "crd-preserve-unknown-fields-changed",
    ),
    (
        "a field that is gone",
        "              step: {type: integer, multipleOf: 2}\n",
        "",
        "crd-upgrade-refused* crd-upgrade-refused* schema-field-removed*",
    ),
    (
        "a field of items that is gone",
        "                    size: {type: integer}\n",
        "",
        "crd-upgrade-refused* schema-field-removed*",
    ),
    (
        "a new field",
        "              free:",
        "              more: {type: string}\n              free:",
        "schema-field-added",
    ),
    (
        "a new field that is required",
        "required: [kind]\n            properties:",
        "required: [kind, more]\n            properties:\n              more: {type: string}",
        "schema-field-added schema-required-added*",
    ),
    ("another type", "size: {type: integer}", "size: {type: string}", "schema-type-changed*"),
    ("an integer that is a number", "low: {type: integer}", "low: {type: number}", "schema-widened*"),
    ("a number that is an integer", "high: {type: number}", "high: {type: integer}", "schema-type-changed*"),
    (
        "an integer or text that is text",
        "x-kubernetes-int-or-string: true",
        "type: string",
        "crd-upgrade-refused* schema-type-changed*",
    ),
    ("a required field", "required: [kind]", "required: [kind, name]", "schema-required-added*"),
    ("a field no longer required", "required: [kind]", "required: []", "schema-widened"),
    ("a value less", "[iron, glass]", "[iron]", "schema-enum-narrowed*"),
    ("a value more", "[iron, glass]", "[iron, glass, clay]", "schema-widened"),
    ("any value", "enum: [iron, glass], ", "", "schema-widened*"),
    (
        "only some values",
        "{type: string, maxLength: 20,",
        "{type: string, enum: [a], maxLength: 20,",
        "schema-enum-narrowed*",
    ),
    ("a lower maximum", "maximum: 8", "maximum: 7", "schema-bound-narrowed*"),
    ("a higher maximum", "maximum: 8", "maximum: 9", "schema-widened"),
    ("no maximum", "maximum: 8, ", "", "schema-widened"),
    ("an exclusive maximum", "maximum: 8", "maximum: 8, exclusiveMaximum: true", "schema-bound-narrowed*"),
    ("a higher minimum", "minimum: 1", "minimum: 2", "schema-bound-narrowed*"),
    ("a shorter text", "maxLength: 20", "maxLength: 19", "schema-bound-narrowed*"),
    ("a longer text at least", "minLength: 2", "minLength: 3", "schema-bound-narrowed*"),
    ("fewer items", "maxItems: 5", "maxItems: 4", "schema-bound-narrowed*"),
    ("more items at least", "minItems: 1", "minItems: 2", "schema-bound-narrowed*"),
    ("fewer keys", "maxProperties: 9", "maxProperties: 8", "schema-bound-narrowed*"),
    ("another multiple", "multipleOf: 2", "multipleOf: 3", "schema-bound-narrowed*"),
    ("a multiple of less", "multipleOf: 2", "multipleOf: 1", "schema-widened*"),
    ("another pattern", "'^[a-z]+$'", "'^[a-z]*$'", "schema-pattern-narrowed*"),
    ("no pattern", ", pattern: '^[a-z]+$'", "", "schema-widened*"),
    ("another format", "format: uri", "format: email", "schema-format-narrowed*"),
    (
        "a wider format of a number, which is never checked",
        "format: int32",
        "format: int64",
        "crd-upgrade-refused*",
    ),
    ("no null", "nullable: true, ", "", "schema-nullable-removed*"),
    ("null", "{type: string, maxLength", "{nullable: true, type: string, maxLength", "schema-widened*"),
    ("another default", "default: iron", "default: glass", "schema-default-changed*"),
    ("no default", ", default: iron", "", "schema-default-changed*"),
    (
        "a default",
        "{type: integer, minimum",
        "{type: integer, default: 2, minimum",
        "schema-default-changed*",
    ),
    (
        "a list that is no set",
        "x-kubernetes-list-type: set",
        "x-kubernetes-list-type: atomic",
        "schema-list-type-changed*",
    ),
    (
        "other keys of a list",
        "[name]\n                items:",
        "[size]\n                items:",
        "schema-list-type-changed*",
    ),
    (
        "a map that is atomic",
        "heat:\n                type: object",
        "heat:\n                type: object\n                x-kubernetes-map-type: atomic",
        "schema-list-type-changed*",
    ),
    (
        "unknown fields that are pruned",
        "free: {type: object, x-kubernetes-preserve-unknown-fields: true}",
        "free: {type: object}",
        "schema-unknown-fields-pruned*",
    ),
    (
        "unknown fields that are kept",
        "pick: {type: object,",
        "pick: {x-kubernetes-preserve-unknown-fields: true, type: object,",
        "schema-widened*",
    ),
    (
        "a rule more",
        "                - {rule: self.low",
        "                - {rule: self.low > 0}\n                - {rule: self.low",
        "schema-rule-narrowed*",
    ),
    (
        "a rule less",
        "                x-kubernetes-validations:\n                - {rule: self.low < self.high, message: low first}\n",
        "",
        "schema-widened*",
    ),
    (
        "no free keys",
        ", additionalProperties: {type: string}",
        "",
        "crd-upgrade-refused* crd-upgrade-refused* schema-map-narrowed*",
    ),
    (
        "free keys of another type",
        "additionalProperties: {type: string}",
        "additionalProperties: {type: integer}",
        "crd-upgrade-refused* schema-type-changed*",
    ),
    (
        "an alternative less",
        "oneOf: [{required: [a]}, {required: [b]}]",
        "oneOf: [{required: [a]}]",
        "crd-upgrade-refused* schema-combination-narrowed*",
    ),
    (
        "no alternatives",
        "oneOf: [{required: [a]}, {required: [b]}], ",
        "",
        "crd-upgrade-refused* crd-upgrade-refused* schema-widened*",
    ),
    (
        "a schema that is excluded",
        "pick: {type: object,",
        "pick: {not: {required: [c]}, type: object,",
        "schema-combination-narrowed*",
    ),
    (
        "a type of a field that could hold anything",
        "free: {type: object,",
        "free: {properties: {size: {type: integer}}, type: object,",
        "schema-type-changed",
    ),
    (
        "a field that can still hold anything",
        "free: {type: object,",
        "free: {properties: {size: {x-kubernetes-preserve-unknown-fields: true}}, type: object,",
        "schema-field-added",
    ),
    (
        "a key of a map that gets a schema of its own",
        "tags: {type: object,",
        "tags: {properties: {size: {type: string, maxLength: 3}}, type: object,",
        "schema-bound-narrowed",
    ),
    (
        "a limit on names of objects",
        "        properties:\n          spec:",
        "        properties:\n          metadata: {type: object, properties: {name: {type: string, maxLength: 5}}}\n          spec:",
        "schema-bound-narrowed",
    ),
    (
        "fields that every object has",
        "        properties:\n          spec:",
        "        required: [metadata]\n        properties:\n          kind: {type: string}\n          spec:",
        "crd-upgrade-refused*",
    ),
    (
        "the two types of an integer or string",
        "x-kubernetes-int-or-string: true",
        "x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]",
        "crd-upgrade-refused*",
    ),
    (
        "a bound that is said twice",
        "maxLength: 20,",
        "maxLength: 20, allOf: [{maxLength: 20}],",
        "schema-widened*",
    ),
    ("a bound of numbers on a text", "maxLength: 20,", "maxLength: 20, maximum: 5,", "crd-upgrade-refused*"),
    (
        "every integer as a multiple of 1",
        "low: {type: integer}",
        "low: {type: integer, multipleOf: 1}",
        "crd-upgrade-refused*",
    ),
    (
        "the same bound of an integer, excluded",
        "minimum: 1, maximum: 8",
        "minimum: 0, exclusiveMinimum: true, maximum: 8",
        "crd-upgrade-refused*",
    ),
    ("spaces in a rule", "{rule: self.low < self.high", "{rule: self.low<self.high", "crd-upgrade-refused*"),
    (
        "no minimum that says nothing",
        "free: {type: object,",
        "free: {minProperties: 0, type: object,",
        "crd-upgrade-refused*",
    ),
];

fn codes(old: &str, new: &str) -> String {
    let (old, new) = (first_document(old).unwrap(), first_document(new).unwrap());
    let (a, b) = (Source::new("old.yaml", CRD), Source::new("new.yaml", CRD));
    let findings = compare(Object { source: &a, root: &old.root }, Object { source: &b, root: &new.root });
    let shown = |finding: &crate::finding::Finding| {
        format!("{}{}", finding.code.name, if finding.v1.is_some() { "*" } else { "" })
    };
    let mut codes: Vec<_> = findings.iter().map(shown).collect();
    codes.sort();
    codes.join(" ")
}

#[test]
fn every_change_has_its_code() {
    let mut wrong = String::new();
    for (what, before, after, expected) in CHANGES {
        assert!(
            CRD.matches(before).count() == 1,
            "{what}: `{before}` stands {} times",
            CRD.matches(before).count()
        );
        let found = codes(CRD, &CRD.replacen(before, after, 1));
        if found != *expected {
            wrong += &format!("{what}: expected `{expected}`, found `{found}`\n");
        }
    }
    assert!(CHANGES.len() >= 60 && wrong.is_empty(), "{wrong}");
}

#[test]
fn served_versions_without_a_webhook_have_to_agree() {
    let crd = |second: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: kettles.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: Kettle, plural: kettles}}
  versions:
  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, properties: {{a: {{type: string}}}}}}}}}}
{second}"
        )
    };
    let second = |properties: &str| {
        format!(
            "  - {{name: v2, served: true, storage: false, schema: {{openAPIV3Schema: {{type: object, properties: {{{properties}}}}}}}}}\n"
        )
    };
    let old = crd("");
    assert_eq!(codes(&old, &crd(&second("a: {type: string}"))), "crd-version-added");
    assert_eq!(
        codes(&old, &crd(&second("b: {type: string}"))),
        "crd-served-versions-differ* crd-version-added"
    );
    // What was so before is nobody's fault now.
    let differ = crd(&second("b: {type: string}"));
    assert_eq!(codes(&differ, &differ), "");
}

/// The first branch admits more, the exclusion less.
#[test]
fn combinations_that_admit_more_are_no_break() {
    let with = |field: &str| {
        let kind = "kind: {type: string, enum: [iron, glass], default: iron}";
        CRD.replacen(kind, &format!("{kind}\n              much: {field}"), 1)
    };
    let narrowed =
        |old: &str, new: &str| codes(&with(old), &with(new)).contains("schema-combination-narrowed");
    let any = |least: i32| format!("{{type: integer, anyOf: [{{minimum: {least}}}, {{maximum: 1}}]}}");
    assert!(!narrowed(&any(5), &any(4)));
    assert!(narrowed(&any(4), &any(5)));
    let not = |values: &str| format!("{{type: string, not: {{enum: [{values}]}}}}");
    assert!(!narrowed(&not("x, y"), &not("x")));
    assert!(narrowed(&not("x"), &not("x, y")));
}

#[test]
fn a_storage_version_that_lacks_fields_loses_them() {
    let crd = |first: bool, strategy: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: kettles.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: Kettle, plural: kettles}}
  conversion: {{strategy: {strategy}}}
  versions:
  - {{name: v1, served: true, storage: {first}, schema: {{openAPIV3Schema: {{type: object, properties: {{a: {{type: string}}, b: {{type: string}}}}}}}}}}
  - {{name: v2, served: true, storage: {}, schema: {{openAPIV3Schema: {{type: object, properties: {{a: {{type: string}}}}}}}}}}
",
            !first
        )
    };
    let level = |strategy: &str| {
        let (old, new) = (crd(true, strategy), crd(false, strategy));
        let (a, b) = (Source::new("old.yaml", &old), Source::new("new.yaml", &new));
        let (old, new) = (first_document(&old).unwrap(), first_document(&new).unwrap());
        let findings =
            compare(Object { source: &a, root: &old.root }, Object { source: &b, root: &new.root });
        let found = findings.into_iter().find(|finding| finding.code.name == "crd-storage-version-changed");
        found.map(|finding| (finding.level, finding.message)).unwrap()
    };
    let (of, message) = level("None");
    assert_eq!(of, crate::finding::Level::Error);
    assert!(message.contains("`b` is removed"), "{message}");
    assert_eq!(level("Webhook").0, crate::finding::Level::Warning);
}

/// The codes of a change of `spec.much`, without what OLM v1 alone refuses.
fn field(old: &str, new: &str) -> String {
    let with = |field: &str| {
        let kind = "kind: {type: string, enum: [iron, glass], default: iron}";
        CRD.replacen(kind, &format!("{kind}\n              much: {field}"), 1)
    };
    let all = codes(&with(old), &with(new)).replace('*', "");
    all.split(' ').filter(|code| *code != "crd-upgrade-refused").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_default_that_is_filled_in_counts_against_the_bound_of_its_object() {
    let with = |most: u8, more: &str| {
        format!("{{type: object, maxProperties: {most}, properties: {{a: {{type: string}}{more}}}}}")
    };
    let filled = ", n: {type: string, default: x}";
    assert_eq!(field(&with(1, ""), &with(1, filled)), "schema-bound-narrowed schema-field-added");
    assert_eq!(field(&with(1, ""), &with(2, filled)), "schema-field-added schema-widened");
    assert_eq!(field(&with(1, ""), &with(1, ", n: {type: string}")), "schema-field-added");
}

#[test]
fn a_branch_of_one_of_that_stands_twice_fits_nothing() {
    let of = |name: &str, times: usize| {
        format!("{{type: string, {name}: [{}]}}", vec!["{maxLength: 3}"; times].join(", "))
    };
    assert_eq!(field(&of("oneOf", 1), &of("oneOf", 2)), "schema-combination-narrowed");
    assert_eq!(field(&of("anyOf", 1), &of("anyOf", 2)), "");
}

#[test]
fn what_is_no_object_any_more_loses_what_every_object_has() {
    let of = |more: &str| format!("{{type: object, {more}properties: {{spec: {{type: object}}}}}}");
    let embedded = "x-kubernetes-embedded-resource: true, ";
    assert_eq!(field(&of(embedded), &of("")), "schema-field-removed");
    let keeps = "x-kubernetes-preserve-unknown-fields: true, ";
    assert_eq!(field(&of(&format!("{embedded}{keeps}")), &of(keeps)), "schema-widened");
}

/// Logic says what holds of fields, not which fields there are.
#[test]
fn an_exclusion_that_says_less_excludes_more() {
    let not = |properties: &str| {
        format!(
            "{{type: object, properties: {{a: {{type: string}}}}, not: {{properties: {{{properties}}}}}}}"
        )
    };
    assert_eq!(field(&not("a: {maxLength: 3}"), &not("")), "schema-combination-narrowed");
    assert_eq!(field(&not("a: {maxLength: 3}"), &not("a: {maxLength: 2}")), "schema-widened");
}

#[test]
fn keys_that_are_kept_as_unknown_are_kept() {
    let map = "{type: object, additionalProperties: {type: string}}";
    let kept = "{type: object, x-kubernetes-preserve-unknown-fields: true}";
    let named = "{type: object, properties: {a: {type: string}}}";
    assert_eq!(field(map, kept), "schema-widened schema-widened");
    assert_eq!(field(kept, map), "schema-map-narrowed schema-unknown-fields-pruned");
    assert_eq!(field(named, map), "schema-widened");
}

#[test]
fn a_required_field_with_a_default_is_never_missing() {
    let of = |more: &str| format!("{{type: object, properties: {{a: {{type: string, default: x}}}}{more}}}");
    assert_eq!(field(&of(""), &of(", required: [a]")), "");
}

#[test]
fn formats_that_clusters_do_not_check_say_nothing() {
    for (of, from, to) in [
        ("integer", ", format: int64", ", format: int32"),
        ("string", "", ", format: password"),
        ("string", ", format: quantity", ", format: foo"),
        ("string", ", format: date-time", ", format: datetime"),
    ] {
        let with = |format: &str| format!("{{type: {of}{format}}}");
        assert_eq!(field(&with(from), &with(to)), "", "{from}{to}");
    }
    assert_eq!(field("{type: string}", "{type: string, format: uuid}"), "schema-format-narrowed");
    assert_eq!(field("{type: string, format: uri}", "{type: string, format: foo}"), "schema-widened");
}

#[test]
fn what_a_cluster_fills_into_a_conversion_is_no_change() {
    let saved = CRD.replacen(
        "service: {name: w, namespace: n}",
        "service: {name: w, namespace: n, port: 443}, caBundle: eA==",
        1,
    );
    assert_eq!(codes(CRD, &saved), "");
    let moved = CRD.replacen("service: {name: w,", "service: {name: x,", 1);
    assert!(codes(CRD, &moved).contains("crd-conversion-changed"));
}

#[test]
fn columns_of_one_name_are_compared_in_their_order() {
    let column = "    - {name: Cups, type: integer, jsonPath: .spec.cups}\n";
    let other = "    - {name: Cups, type: string, jsonPath: .spec.kind}\n";
    assert!(CRD.contains(column));
    let twice = CRD.replace(column, &format!("{column}{other}"));
    assert_eq!(codes(&twice, &twice), "");
    assert_eq!(codes(&twice, CRD), "crd-printer-column-changed");
}
