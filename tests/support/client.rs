//! A client for the tests' API server, and whether the server answers.

use std::{path::Path, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

pub(crate) async fn connect(kubeconfig: &Path) -> Client {
    // Fails only when one was installed before, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

pub(crate) fn ready(kubeconfig: &Path) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let namespaces: Api<Namespace> = Api::all(connect(kubeconfig).await);
        let asked = tokio::time::timeout(Duration::from_secs(2), namespaces.get("default")).await;
        asked.is_ok_and(|answer| answer.is_ok())
    })
}
