//! What a registry+v1 bundle is: its names, its ClusterServiceVersion, how it is read, generated and validated.
//!
//! A bundle is a directory that OLM, the Operator Lifecycle Manager of Kubernetes, installs an operator from.
//! This crate reads files and returns values: it never opens a socket, prints, or knows what a catalog is.
