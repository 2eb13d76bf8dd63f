//! The label with which OLM marks what belongs to an operator.

/// The prefix of the label with which OLM marks what belongs to an operator, `PREFIX + PACKAGE.NAMESPACE`
/// (operator-lifecycle-manager `pkg/controller/operators/decorators/operator.go`, `ComponentLabelKeyPrefix`).
pub(super) const COMPONENT: &str = "operators.coreos.com/";
/// How long the name of a label may be; OLM cuts what is longer.
const LABEL_NAME: usize = 63;

/// The label with which OLM marks what belongs to the operator of a package in a namespace.
///
/// ```
/// use olmkit::lifecycle::component::component_label;
/// assert_eq!(component_label("demo", "ns"), "operators.coreos.com/demo.ns");
/// let cut = component_label(&"x".repeat(62), "ns");
/// assert_eq!(cut, format!("operators.coreos.com/{}", "x".repeat(62)));
/// ```
pub fn component_label(package: &str, namespace: &str) -> String {
    let name: String = format!("{package}.{namespace}").chars().take(LABEL_NAME).collect();
    format!("{COMPONENT}{}", name.trim_end_matches(['.', '_', '-']))
}
