//! What operators and OLM expect of a cluster: names of Services, the API server's way to pods, volumes, the registry.

use libtest_mimic::Trial;

use crate::cluster::{Namespace, PATIENCE, within};
use crate::harness::{Company, trial};

/// A pod that answers with the word `hello`, behind a Service.
const WEB: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: web, image: "{probe}", command: [/probe, serve, "8080", hello], readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
"#;

const REQUEST: &str = "GET / HTTP/1.0\\r\\n\\r\\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("services_have_names_and_reach_pods", Company::Any, |namespace| {
            namespace.apply(WEB)?;
            let name = &namespace.name;
            // OLM dials NAME.NAMESPACE.svc. The asking pod and the other side of the Service are on the same node.
            for host in ["web".to_owned(), format!("web.{name}.svc"), format!("web.{name}.svc.cluster.local")]
            {
                let said = namespace.ask(&format!("{host}:80"), REQUEST)?;
                assert!(said.ends_with("\r\n\r\nhello\n"), "{host}: {said}");
            }
            let own = namespace.kubectl(&[
                "exec",
                "web",
                "--",
                "/probe",
                "ask",
                &format!("web.{name}.svc:80"),
                REQUEST,
            ])?;
            assert!(own.ends_with("hello\n"), "a pod does not reach itself through its Service: {own}");
            Ok(())
        }),
        trial("the_api_server_reaches_pods", Company::Any, |namespace| {
            namespace.apply(WEB)?;
            namespace.wait("pod/web", "condition=Ready")?;
            // The way that webhooks and aggregated APIs are called on.
            let path = format!("/api/v1/namespaces/{}/services/http:web:80/proxy/", namespace.name);
            let said = within(PATIENCE, || Ok(namespace.kubectl(&["get", "--raw", &path]).ok()))?;
            assert_eq!(said.as_deref(), Some("hello"));
            // Without it an aggregated API server believes nobody.
            let trusted = "jsonpath={.data.requestheader-client-ca-file}";
            let config = [
                "get",
                "configmap",
                "extension-apiserver-authentication",
                "-n",
                "kube-system",
                "-o",
                trusted,
            ];
            assert!(namespace.cluster.kubectl(&config)?.contains("BEGIN CERTIFICATE"));
            Ok(())
        }),
        trial("a_claim_gets_a_volume_that_outlives_pods", Company::Any, |namespace| {
            namespace.apply(
                "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, \
                 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}",
            )?;
            let pod = |name: &str, command: &str| {
                namespace.run(
                    name,
                    &format!(
                        "volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}], \
                         containers: [{{name: main, image: '{{probe}}', command: [{command}], \
                         volumeMounts: [{{name: data, mountPath: /data}}]}}]"
                    ),
                )
            };
            pod("writer", "/probe, write, /data/kept, 'a word'")?;
            let found = pod("reader", "/probe, tree, /data")?;
            assert!(found.ends_with(" 6 /data/kept\na word\n"), "{found}");
            let volume = volume(namespace)?;
            namespace.kubectl(&["delete", "pod", "writer", "reader"])?;
            namespace.kubectl(&["delete", "persistentvolumeclaim", "data"])?;
            namespace.wait(&format!("persistentvolume/{volume}"), "delete")?;
            Ok(())
        }),
        trial("pods_find_the_registry", Company::Any, |namespace| {
            let said = namespace
                .ask("registry.kube-public.svc:5000", "GET /v2/ HTTP/1.0\\r\\nHost: registry\\r\\n\\r\\n")?;
            assert!(said.contains(" 200 OK"), "{said}");
            Ok(())
        }),
    ]
}

/// The name of the volume that the claim got.
fn volume(namespace: &Namespace) -> Result<String, libtest_mimic::Failed> {
    let claim = namespace.json("persistentvolumeclaim/data")?;
    Ok(claim["spec"]["volumeName"].as_str().ok_or("the claim has no volume")?.to_owned())
}
