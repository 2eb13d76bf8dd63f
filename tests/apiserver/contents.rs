//! The API server as the oracle for what bundles carry beside CRDs: it refuses exactly what `bundle validate` calls invalid.
//!
//! Objects are created in dry runs, so nothing stays.

use olmkit_bundle::finding::Level;
use olmkit_bundle::load::{BundleFile, BundleFiles, Content};
use olmkit_bundle::parse::Bundle;
use olmkit_bundle::validate::{INSTALL, validate};
use olmkit_bundle::yaml;
use reqwest::Client;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::server::{ADMIN, Server};

/// An object that the server takes, where it is created, and texts of it to replace by others, one at a time.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    (
        "api/v1/namespaces/default/configmaps",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a.yaml: 'b: 1', empty: }\nbinaryData: {logo: aGk=}\n",
        &[
            ("'b: 1'", "8080"),
            ("'b: 1'", "true"),
            ("'b: 1'", "{b: 1}"),
            ("a.yaml", "conf/a.yaml"),
            ("a.yaml", "..a"),
            ("a.yaml", ".a"),
            ("a.yaml", "'.'"),
            ("a.yaml", "'a b'"),
            ("aGk=", "aGk"),
            ("aGk=", "aGl="),
            ("aGk=", "'hi!'"),
            ("logo", "a.yaml"),
            ("{a.yaml: 'b: 1', empty: }", "[a]"),
        ],
    ),
    (
        "api/v1/namespaces/default/secrets",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\ntype: kubernetes.io/tls\ndata: {tls.crt: aGk=, tls.key: ''}\nstringData: {plain: 'not base64!'}\n",
        &[
            ("aGk=", "hi"),
            ("aGk=", "1"),
            ("tls.key: ''", "other: ''"),
            ("plain", "tls.key"),
            ("plain: 'not base64!'", "plain: 5"),
            ("kubernetes.io/tls", "kubernetes.io/basic-auth"),
            ("kubernetes.io/tls", "kubernetes.io/ssh-auth"),
            ("kubernetes.io/tls", "kubernetes.io/dockercfg"),
            ("kubernetes.io/tls", "kubernetes.io/dockerconfigjson"),
            ("kubernetes.io/tls", "kubernetes.io/service-account-token"),
            ("kubernetes.io/tls", "example.com/other"),
            ("aGk=", "\"aG\\nk=\\n\""),
        ],
    ),
    (
        "api/v1/namespaces/default/services",
        "apiVersion: v1\nkind: Service\nmetadata: {name: metrics}\nspec:\n  selector: {app: op}\n  ports:\n  - {name: https, port: 443, targetPort: https}\n  - {name: dns, port: 443, protocol: UDP, targetPort: 53}\n",
        &[
            ("metrics", "9lives"),
            ("name: https, ", ""),
            ("name: dns", "name: https"),
            ("name: dns", "name: DNS"),
            ("name: dns", "name: a-name-of-more-than-fifteen-letters"),
            (", protocol: UDP", ""),
            ("port: 443, targetPort: https", "port: 0"),
            ("port: 443, targetPort: https", "port: https"),
            ("port: 443, targetPort: https", "port: 443, targetPort: 0"),
            ("53", "70000"),
            ("53", "'53'"),
            ("53", "''"),
            ("UDP", "udp"),
            ("53", "53, nodePort: 30000"),
            ("app: op", "app: true"),
            ("app: op", "app: 'a b'"),
            ("selector", "externalTrafficPolicy: Local\n  selector"),
            ("selector", "externalTrafficPolicy: Local\n  type: NodePort\n  selector"),
            ("selector", "externalTrafficPolicy: Local\n  externalIPs: [192.0.2.1]\n  selector"),
            ("selector", "clusterIP: None\n  selector"),
            ("selector", "clusterIP: None\n  type: NodePort\n  selector"),
            ("selector", "type: ExternalName\n  selector"),
            ("selector", "type: ExternalName\n  externalName: db.example.com.\n  selector"),
            ("selector", "type: Other\n  selector"),
            ("selector", "sessionAffinity: Cookie\n  selector"),
            (
                "  ports:\n  - {name: https, port: 443, targetPort: https}\n  - {name: dns, port: 443, protocol: UDP, targetPort: 53}\n",
                "",
            ),
        ],
    ),
    (
        "apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: op}\nspec: {minAvailable: 1, selector: {matchLabels: {app: op}}}\n",
        &[
            ("minAvailable: 1", "minAvailable: 1, maxUnavailable: 1"),
            ("Available: 1", "Available: -1"),
            ("Available: 1", "Available: '1'"),
            ("Available: 1", "Available: 100%"),
            ("Available: 1", "Available: 101%"),
            ("matchLabels: {app: op}", "matchLabels: {app: 'a b'}"),
            ("matchLabels: {app: op}", "matchExpressions: [{key: app, operator: In}]"),
            ("matchLabels: {app: op}", "matchExpressions: [{key: app, operator: Exists, values: [a]}]"),
            ("matchLabels: {app: op}", "matchExpressions: [{key: app, operator: Is, values: [a]}]"),
            ("minAvailable: 1", "unhealthyPodEvictionPolicy: Never"),
            ("minAvailable: 1, selector: {matchLabels: {app: op}}", ""),
        ],
    ),
    (
        "apis/scheduling.k8s.io/v1/priorityclasses",
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: op}\nvalue: 1000000000\n",
        &[
            ("1000000000", "1000000001"),
            ("1000000000", "high"),
            ("1000000000", "-5"),
            ("name: op", "name: system-op"),
            ("value", "preemptionPolicy: Always\nvalue"),
            ("value", "preemptionPolicy: Never\nvalue"),
        ],
    ),
    (
        "apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: op}\nspec:\n  podSelector: {}\n  policyTypes: [Ingress, Egress]\n  ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: ['10.1.0.0/16']}}], ports: [{port: 80, endPort: 90}]}]\n  egress: [{}]\n",
        &[
            ("{podSelector: {}}", "{}"),
            ("{ipBlock", "{podSelector: {}, ipBlock"),
            ("10.0.0.0/8", "10.0.0.0"),
            ("10.0.0.0/8", "10.0.0.0/33"),
            ("10.1.0.0/16", "10.1/16"),
            ("90", "70"),
            ("port: 80", "port: http"),
            ("port: 80, endPort: 90", "port: http"),
            ("port: 80, endPort: 90", "port: 80, protocol: tcp"),
            ("port: 80, ", ""),
            ("Egress]", "egress]"),
            ("Egress]", "Egress, Ingress]"),
        ],
    ),
];

/// The errors that we find in an object.
fn ours(object: &Value) -> Vec<String> {
    let content = Content::from_bytes(object.to_string().into_bytes());
    let files = vec![BundleFile { path: "manifests/object.yaml".into(), content }];
    let files = BundleFiles { name: "bundle".into(), files };
    let findings = validate(&Bundle::parse(&files), &[INSTALL]);
    let errors = findings.into_iter().filter(|own| own.level == Level::Error);
    errors.filter(|own| own.code.name == "manifest-content-invalid").map(|own| own.message).collect()
}

pub(crate) fn what_it_refuses_of_other_objects_is_found() {
    let server = Server::start();
    let client = Client::builder().danger_accept_invalid_certs(true).build().unwrap();
    let runtime = Runtime::new().unwrap();
    let mut differences = Vec::new();
    for (path, good, changes) in CASES {
        for (from, to) in [("", "")].iter().chain(*changes) {
            assert!(good.contains(from), "{from}");
            let object = yaml::first_document(&good.replacen(from, to, 1)).unwrap().root.to_json();
            let request = client.post(format!("{}/{path}?dryRun=All", server.address()));
            let request = request.bearer_auth(format!("{ADMIN}-token"));
            let request = request.header("content-type", "application/json").body(object.to_string());
            let answer = runtime.block_on(request.send()).unwrap();
            let status = answer.status().as_u16();
            let told = runtime.block_on(answer.text()).unwrap();
            assert!(matches!(status, 201 | 400 | 422), "{status} to {object}: {told}");
            let ours = ours(&object);
            if (status == 201) != ours.is_empty() {
                differences
                    .push(format!("{path}: {from} -> {to}\n  server: {status} {told}\n  we: {ours:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
